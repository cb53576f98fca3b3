// The file of a TSIG key, as BIND's tsig-keygen and Knot's keymgr write it: one key a file. Read without a parser of
// either server's configuration: of both only what these tools write is taken.
import { queryableName } from "./message.ts";

/** Those that RFC 8945 §6 allows, and no older one; Node's names. */
export const hashes = { "hmac-sha256": "sha256", "hmac-sha384": "sha384", "hmac-sha512": "sha512" } as const;
export type TsigAlgorithm = keyof typeof hashes;

export interface TsigKey {
  /** Without the final dot. */
  name: string;
  algorithm: TsigAlgorithm;
  secret: Buffer;
}

/** A secret of fewer octets is guessed, or was cut short. */
const leastOctets = 16;
const longestFile = 65_536;

export type ReadKey = { ok: true; key: TsigKey } | { ok: false; found: string; expected: string };

const bind = 'key "name" { algorithm hmac-sha256; secret "…"; };';

export function parseTsigKey(text: string): ReadKey {
  if (text.length > longestFile) return refused(`${text.length} characters`, "a key file");
  // Comments: in Knot's form two slashes are base64 as any other, and in BIND's they stand in quotes then.
  const inBindForm = text.replace(/"[^"\n]*"|\/\*[^]*?\*\/|\/\/.*|#.*/g, (part) =>
    part.startsWith('"') ? part : " ",
  );
  const inKnotForm = text.replace(/#.*/g, "");
  const inBind = [...inBindForm.matchAll(/\bkey\s+"?([^\s"{};]+)"?\s*\{([^{}]*)\}/g)].map(
    ([, name, body = ""]) => ({
      name,
      algorithm: /\balgorithm\s+"?([\w.-]+)"?\s*;/.exec(body)?.[1],
      secret: /\bsecret\s+"?([\w+/=]+)"?\s*;/.exec(body)?.[1],
    }),
  );
  const inKnot = inKnotForm
    .split(/^[ \t]*-[ \t]*(?=id[ \t]*:)/m)
    .slice(1)
    .map((item) => ({
      name: member(item, "id"),
      algorithm: member(item, "algorithm"),
      secret: member(item, "secret"),
    }));
  const [key, ...more] = [...inBind, ...inKnot];
  if (!key?.name)
    return refused("no key", `${bind} (tsig-keygen), or key: with id, algorithm and secret (keymgr)`);
  if (more.length > 0) return refused(`${more.length + 1} keys`, "one");
  return checked({ name: key.name, algorithm: key.algorithm ?? "", secret: key.secret ?? "" });
}

/** Of YAML as keymgr writes it. */
function member(item: string, name: string): string | undefined {
  return new RegExp(`^[ \\t]*${name}[ \\t]*:[ \\t]*["']?([^\\s"']+)["']?[ \\t]*\\r?$`, "m").exec(item)?.[1];
}

function checked({ name, algorithm, secret }: { name: string; algorithm: string; secret: string }): ReadKey {
  const plain = name.toLowerCase().replace(/\.$/, "");
  if (!queryableName(plain))
    return refused(`a key named "${name}"`, "a name of labels with dots between them");
  const of = Object.keys(hashes).find((one) => one === algorithm.toLowerCase().replace(/\.$/, ""));
  if (of === undefined)
    return refused(
      algorithm === "" ? "no algorithm" : `the algorithm ${algorithm}`,
      Object.keys(hashes).join(", "),
    );
  const octets = Buffer.from(secret, "base64");
  if (
    octets.toString("base64").replace(/=+$/, "") !== secret.replace(/=+$/, "") ||
    octets.length < leastOctets
  )
    return refused("no secret that can be used", `at least ${leastOctets} octets in base64`);
  return { ok: true, key: { name: plain, algorithm: of as TsigAlgorithm, secret: octets } };
}

const refused = (found: string, expected: string): ReadKey => ({ ok: false, found, expected });
