// Whose the files of the data directory are. The service runs as a user of its own; what root makes there (`svc init`,
// `svc backup --offline`) is handed to the owner of the directory, or the service could not read it, and `svc restore` does
// its work as the owner. That user may be an attacker's by now: where it can change names meanwhile, root follows none.
import {
  closeSync,
  constants,
  fchownSync,
  fstatSync,
  openSync,
  readdirSync,
  statSync,
  type Stats,
} from "node:fs";
import { join } from "node:path";

export type Owner = Pick<Stats, "uid" | "gid">;

export const isRoot = (): boolean => process.getuid?.() === 0;

/** Of root alone; does nothing otherwise. `made`: what is handed to the owner of `directory`, folders with all that is in them. */
export function handToOwner(directory: string, made: readonly string[]): void {
  if (!isRoot()) return;
  const owner = statSync(directory);
  for (const path of made) hand(path, owner);
}

function hand(path: string, owner: Owner): void {
  const fd = openUnfollowed(path);
  if (fd === null) return;
  try {
    const kind = fstatSync(fd);
    if (kind.isFile() && kind.nlink > 1) return; // its owner could have linked another's file here
    if (!kind.isFile() && !kind.isDirectory()) return;
    if (kind.isDirectory())
      for (const name of readdirSync(pathOf(fd, path))) hand(join(pathOf(fd, path), name), owner);
    fchownSync(fd, owner.uid, owner.gid);
  } finally {
    closeSync(fd);
  }
}

/** null: there is none, or it is a link or a socket. A pipe is not waited for. */
function openUnfollowed(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ELOOP" || code === "ENXIO") return null;
    throw error;
  }
}

/** What is open as `fd`, wherever its name leads by now. */
export const pathOf = (fd: number, path: string): string =>
  process.platform === "linux" ? `/proc/self/fd/${fd}` : path;

/** Of root alone, whose rights `work` has not: it can read and write what `owner` can. Otherwise it is only done. */
export function asOwner<T>(owner: Owner, work: () => T): T {
  const { geteuid, getegid, getgroups } = process;
  if (!isRoot() || !geteuid || !getegid || !getgroups) return work();
  const [uid, gid, groups] = [geteuid(), getegid(), getgroups()];
  become(owner.uid, owner.gid, [owner.gid]);
  try {
    return work();
  } finally {
    become(uid, gid, groups);
  }
}

function become(uid: number, gid: number, groups: number[]): void {
  process.seteuid?.(0); // only root can become another
  process.setgroups?.(groups);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}
