// Where the daemon's admin socket may be, in search order. The configuration is read only if none of the usual
// places answers (another data_dir).
import { join } from "node:path";
import { placesOf, type Person } from "../config/places.ts";

/** Sockets to try; one named by --socket or SVC_SOCKET is the only one. */
export function socketCandidates(named: string | undefined, person: Person): string[] {
  const byHand = named ?? person.env["SVC_SOCKET"];
  if (byHand !== undefined && byHand !== "") return [byHand];
  const places = placesOf(person);
  const dataDir = person.env["SVC_DATA_DIR"];
  const paths = [
    dataDir === undefined ? null : join(dataDir, "admin.sock"),
    places.socket,
    join(places.dataDir, "admin.sock"),
    places.system ? null : "/run/svc/admin.sock",
  ];
  return [...new Set(paths.filter((path) => path !== null))];
}

/** The socket of the configuration, null where that cannot be read. */
export async function configuredSocket(person: Person): Promise<string | null> {
  const { loadConfig } = await import("../config.ts");
  const result = loadConfig({ flags: {}, ...person });
  return "config" in result ? result.config.socket : null;
}
