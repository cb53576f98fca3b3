// Whose the files of the data directory are. The service runs as a user of its own; what root makes there (`svc init`,
// `svc restore`) is handed to the owner of the directory, or the service could not read it.
import { existsSync, lchownSync, lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

export const isRoot = (): boolean => process.getuid?.() === 0;

/** Of root alone; does nothing otherwise. `made`: what is handed to the owner of `directory`, folders with all that is in them. */
export function handToOwner(directory: string, made: readonly string[]): void {
  if (!isRoot()) return;
  const { uid, gid } = statSync(directory);
  const hand = (path: string): void => {
    if (!existsSync(path)) return;
    const kind = lstatSync(path);
    if (kind.isFile() && kind.nlink > 1) return; // its owner could have linked another's file here
    lchownSync(path, uid, gid);
    if (kind.isDirectory()) for (const name of readdirSync(path)) hand(join(path, name));
  };
  for (const path of made) hand(path);
}
