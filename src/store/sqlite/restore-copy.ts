// The files of a backup copied for a restore. As root each folder is read with the rights of its owner, who could put a link
// in the place of any name meanwhile, and what is read is written with those of the data directory's owner (restore.ts).
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { asOwner, isRoot, pathOf, type Owner } from "../../owner.ts";
import { linkOrCopy, syncPath } from "./backup-files.ts";
import { databaseName } from "./engine/open.ts";

const root: Owner = { uid: 0, gid: 0 };

/** The database, and `folders` where the backup has them. */
export function copyBackup(from: string, to: string, folders: readonly string[]): void {
  // Open: its owner need not be able to reach it, as where root has put a copy into a folder of its own.
  const fd = asOwner(root, () => openSync(from, constants.O_RDONLY | constants.O_DIRECTORY));
  try {
    const inside = pathOf(fd, from);
    const owner = fstatSync(fd);
    copyFile(join(inside, databaseName), join(to, databaseName), { owner, shown: join(from, databaseName) });
    for (const name of folders)
      copyTree(join(inside, name), join(to, name), { owner, shown: join(from, name) });
  } finally {
    closeSync(fd);
  }
}

/** `owner`: of the folder that it is in; `shown`: its name for the operator. */
interface Source {
  owner: Owner;
  shown: string;
}

/**
 * Files are never changed in place, so a link does where the disk is the same; as root they are copied, since they get
 * another owner. Nothing but files and folders is taken.
 */
function copyTree(from: string, to: string, { owner: above, shown }: Source): void {
  const owner = asOwner(above, () => lstatSync(from, { throwIfNoEntry: false }));
  if (!owner) return;
  // A link would lead root to files of others, which the service would get then.
  if (!owner.isDirectory()) throw new Error(`${shown} is not a folder`);
  mkdirSync(to, { mode: 0o700 });
  for (const entry of asOwner(owner, () => readdirSync(from, { withFileTypes: true }))) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    const inside = { owner, shown: join(shown, entry.name) };
    if (entry.isDirectory()) copyTree(source, target, inside);
    else if (entry.isFile() && isRoot()) copyFile(source, target, inside);
    else if (entry.isFile()) linkOrCopy(source, target);
  }
  syncPath(to);
}

function copyFile(from: string, to: string, { owner, shown }: Source): void {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK; // a pipe is not waited for
  const source = asOwner(owner, () => openSync(from, flags));
  try {
    if (!fstatSync(source).isFile()) throw new Error(`${shown} is not a file`);
    const target = openSync(to, "wx", 0o600);
    try {
      copyBytes(source, target);
      fsyncSync(target);
    } finally {
      closeSync(target);
    }
  } finally {
    closeSync(source);
  }
}

const pieceBytes = 1024 * 1024;

function copyBytes(source: number, target: number): void {
  const piece = Buffer.allocUnsafe(pieceBytes);
  for (let read = readSync(source, piece); read > 0; read = readSync(source, piece))
    for (let at = 0; at < read;) at += writeSync(target, piece, at, read - at);
}
