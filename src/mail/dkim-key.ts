// Imports a DKIM key: an unencrypted private key in PEM form, RSA of at least 2048 bits (RFC 8301 §3.2) or Ed25519
// (RFC 8463). It is converted to the stored form, and must make one signature before it is accepted.
import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from "node:crypto";
import type { SigningKey } from "./dkim.ts";

export interface OwnKey {
  algorithm: SigningKey["algorithm"];
  /** PKCS #8 PEM. */
  privatePem: string;
  /** As it stands in the record, base64. */
  publicKey: string;
}

const leastBits = 2048;
/** The cost of a signature grows with the cube of the size, and receivers do not trust a larger key more. */
const mostBits = 4096;

/** Reads a PEM; the issue of a refusal is a phrase such as `is not a private key …`. */
export function readDkimKey(pem: string): { ok: true; value: OwnKey } | { ok: false; issue: string } {
  const key = privateKeyOf(pem);
  if (key === null) return { ok: false, issue: "is not a private key in PEM form without a passphrase" };
  const { asymmetricKeyType: type } = key;
  if (type !== "rsa" && type !== "ed25519")
    return { ok: false, issue: `is a key of the kind ${type}; RSA or Ed25519 is expected` };
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (type === "rsa" && (bits < leastBits || bits > mostBits))
    return { ok: false, issue: `is an RSA key of ${bits} bits; ${leastBits} to ${mostBits} are expected` };
  if (!signs(key)) return { ok: false, issue: "is a key whose signatures do not verify" };
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return {
    ok: true,
    value: {
      algorithm: type === "rsa" ? "rsa-sha256" : "ed25519-sha256",
      privatePem: key.export({ type: "pkcs8", format: "pem" }).toString(),
      // The last 32 octets of an Ed25519 SPKI are the key itself (RFC 8410 §4).
      publicKey: (type === "rsa" ? spki : spki.subarray(-32)).toString("base64"),
    },
  };
}

function privateKeyOf(pem: string): KeyObject | null {
  try {
    return createPrivateKey({ key: pem, format: "pem" });
  } catch {
    return null;
  }
}

/** A PEM may contain numbers that are not a valid key. */
function signs(key: KeyObject): boolean {
  const data = Buffer.from("svc");
  const hash = key.asymmetricKeyType === "rsa" ? "sha256" : null;
  try {
    return verify(hash, data, createPublicKey(key), sign(hash, data, key));
  } catch {
    return false;
  }
}
