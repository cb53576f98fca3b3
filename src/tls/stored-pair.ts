// A certificate and its key in one PEM file of ours, the chain first: replaced by one rename, so that no crash leaves the
// key of another. What the ACME server issued and what the operator installed are kept so, directly in <dataDir>/tls,
// which backups copy.
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { certificatePair, type CertificatePair } from "./files.ts";

const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g;

/** null: there is none. Throws an Error that says what is wrong with it. */
export async function readStored(file: string): Promise<CertificatePair | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return null;
  const blocks = [...text.matchAll(block)];
  const of = (isKey: boolean): string =>
    blocks
      .filter(([, label = ""]) => label.endsWith("PRIVATE KEY") === isKey)
      .map(([whole]) => `${whole}\n`)
      .join("");
  return certificatePair(of(false), of(true), { cert: file, key: file });
}

export async function storePair(file: string, { cert, key }: { cert: string; key: string }): Promise<void> {
  await replaceFile(file, `${cert.trim()}\n${key.trim()}\n`);
}

/** Never half a file under its name, on disk when it has it; readable by us alone from its first byte. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const folder = dirname(file);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const fresh = `${file}.new`;
  await rm(fresh, { force: true });
  await writeFile(fresh, text, { mode: 0o600, flag: "wx", flush: true });
  await rename(fresh, file);
}
