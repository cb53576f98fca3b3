// The systemd unit of an installation: the one that the package has (systemd/svc-mail.service), with the paths, the user
// and the program of who asks. Pure.

export interface Installation {
  /** Absolute, of the command. */
  program: string;
  /** null: the machine's mail service, as the user svc. */
  user: string | null;
  /** svc.yaml, where it is not one that the service finds by itself. */
  config: string | null;
  /** Options that are given by variables of the environment. */
  environment: Readonly<Record<string, string>>;
  dataDir: string;
  /** Other folders that it writes to. */
  writes: readonly string[];
  /** Files that it reads: certificates, keys, passwords. */
  reads: readonly string[];
}

/** `template`: the text of `unitFile`. */
export function unitFor(template: string, at: Installation): string {
  const own = at.user !== null || at.dataDir !== "/var/lib/svc";
  const writes = [...(own ? [at.dataDir] : []), ...at.writes.map((path) => `-${path}`)];
  const start = [at.program, "serve", ...(at.config === null ? [] : ["--config", at.config])];
  const replaced: Record<string, string[]> = {
    ExecStart: [
      ...Object.entries(at.environment).map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`),
      `ExecStart=${start.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}`,
    ],
    ReadWritePaths: writes.length === 0 ? [] : [`ReadWritePaths=${writes.map(quoted).join(" ")}`],
    // Below /home all but the paths above stays read-only.
    ...(isBelowHome(at) ? { ProtectHome: ["ProtectHome=read-only"] } : {}),
    // With these the service would take itself for the machine's own, and look for all in /etc and /var/lib.
    ...(at.user === null
      ? {}
      : { User: [`User=${at.user}`], ...Object.fromEntries(systemOnly.map((key) => [key, []])) }),
  };
  const body = template.slice(template.indexOf("[Unit]")).split("\n");
  const lines = body.flatMap((line) => {
    const key = /^(\w+)=/.exec(line)?.[1];
    return key !== undefined && Object.hasOwn(replaced, key) ? (replaced[key] ?? []) : [line];
  });
  return `# Made by svc config systemd-unit.\n${lines.join("\n")}`;
}

const systemOnly = [
  "Group",
  "StateDirectory",
  "StateDirectoryMode",
  "RuntimeDirectory",
  "RuntimeDirectoryMode",
  "RuntimeDirectoryPreserve",
];

function isBelowHome(at: Installation): boolean {
  const paths = [at.program, at.config ?? "", at.dataDir, ...at.writes, ...at.reads];
  return paths.some((path) => /^\/(?:home|root|run\/user)\//.test(path));
}

/** systemd.syntax(7): specifiers are doubled, spaces need quotes. */
function quoted(text: string): string {
  const plain = text.replaceAll("%", "%%");
  return /[\s"'\\;]/.test(plain) ? `"${plain.replaceAll(/["\\]/g, (mark) => `\\${mark}`)}"` : plain;
}
