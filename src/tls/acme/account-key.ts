// The key of our account at the ACME server: made once, kept with the certificates, and in backups.
import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../stored-pair.ts";

/** No host name: it has no dot. */
export const accountKeyName = "acme-account.pem";

/** Throws an Error in plain words where it cannot be read: another one would be another account. */
export async function openAccountKey(folder: string): Promise<KeyObject> {
  const file = join(folder, accountKeyName);
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text !== null) {
    try {
      return createPrivateKey(text);
    } catch (error) {
      throw new Error(
        `${file} is not a private key: put it back from a backup, or remove it for a new account`,
        {
          cause: error,
        },
      );
    }
  }
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await replaceFile(file, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  return privateKey;
}
