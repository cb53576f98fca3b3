// Where things live: the configuration, the data and the admin socket of a system
// service (root, or a unit of systemd) and of a plain user (XDG base directories). No file is opened here.
import { isAbsolute, join } from "node:path";

export type Environment = Record<string, string | undefined>;

/** Whom the program runs as; `uid` is 0 for root. */
export interface Person {
  env: Environment;
  home: string;
  uid: number;
}

export interface Places {
  /** Runs as the machine's mail service: standard ports, /etc, /var/lib, /run. */
  system: boolean;
  systemConfig: string;
  /** Every `*.yaml` of it is read after `systemConfig`, in the order of names. */
  systemConfigDir: string;
  /** null for root, who has the system's file. */
  userConfig: string | null;
  dataDir: string;
  /** null: `<data_dir>/backups`. */
  backups: string | null;
  /** null: `<data_dir>/admin.sock`. */
  socket: string | null;
}

export function placesOf({ env, home, uid }: Person): Places {
  const state = firstOf(env["STATE_DIRECTORY"]);
  const system = uid === 0 || state !== null;
  const xdg = (name: string): string | null => {
    const value = env[name];
    return value !== undefined && isAbsolute(value) ? value : null;
  };
  const runtime = xdg("XDG_RUNTIME_DIR");
  return {
    system,
    systemConfig: "/etc/svc/svc.yaml",
    systemConfigDir: "/etc/svc/conf.d",
    userConfig: uid === 0 ? null : join(xdg("XDG_CONFIG_HOME") ?? join(home, ".config"), "svc", "svc.yaml"),
    dataDir: system
      ? (state ?? "/var/lib/svc")
      : join(xdg("XDG_DATA_HOME") ?? join(home, ".local", "share"), "svc"),
    backups: system ? "/var/backups/svc" : null,
    socket: system
      ? join(firstOf(env["RUNTIME_DIRECTORY"]) ?? "/run/svc", "admin.sock")
      : runtime === null
        ? null
        : join(runtime, "svc", "admin.sock"),
  };
}

/** systemd joins several directories with colons. */
function firstOf(value: string | undefined): string | null {
  const first = value?.split(":")[0];
  return first !== undefined && isAbsolute(first) ? first : null;
}
