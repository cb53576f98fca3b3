// Whose the files of the data directory are. The service runs as a user of its own; what root makes there (`svc init`) is
// handed to the owner of the directory, or the service could not read it, and `svc restore`, `svc migrate` and `svc backup
// --offline` do their work as the owner. That user may be an attacker's by now: where it can change names meanwhile, root follows none.
import {
  closeSync,
  constants,
  existsSync,
  fchownSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  type Stats,
} from "node:fs";
import { dirname, join } from "node:path";

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

/** The same of work that takes a while: all threads of the process have no more than the owner's rights until it has ended. */
export async function asOwnerThroughout<T>(owner: Owner, work: () => Promise<T>): Promise<T> {
  const { geteuid, getegid, getgroups } = process;
  if (!isRoot() || !geteuid || !getegid || !getgroups) return work();
  const [uid, gid, groups] = [geteuid(), getegid(), getgroups()];
  become(owner.uid, owner.gid, [owner.gid]);
  try {
    return await work();
  } finally {
    become(uid, gid, groups);
  }
}

/**
 * Of root alone: a folder that is not there is made for `owner`, also where only root may, as long as nobody else can change
 * a name on the way to it. Otherwise does nothing: who then uses it says what is missing.
 */
export function makeFolderFor(owner: Owner, path: string): void {
  if (!isRoot() || existsSync(path)) return;
  try {
    return asOwner(owner, () => void mkdirSync(path, { recursive: true, mode: 0o700 }));
  } catch {
    if (!isRootsAlone(dirname(path))) return;
  }
  mkdirSync(path, { mode: 0o700 });
  hand(path, owner);
}

function isRootsAlone(folder: string): boolean {
  const facts = lstatSync(folder, { throwIfNoEntry: false });
  if (!facts?.isDirectory() || facts.uid !== 0 || (facts.mode & 0o022) !== 0) return false;
  return folder === dirname(folder) || isRootsAlone(dirname(folder));
}

function become(uid: number, gid: number, groups: number[]): void {
  process.seteuid?.(0); // only root can become another
  process.setgroups?.(groups);
  process.setegid?.(gid);
  process.seteuid?.(uid);
}
