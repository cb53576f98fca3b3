// Key files as BIND and Knot write them, and all else that may stand in a file.
import { expect, test } from "vitest";
import { parseTsigKey } from "../../src/dns/tsig-key.ts";

const secret = "//8AAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0=";
const octets = Buffer.from(secret, "base64");

test.each([
  [
    "tsig-keygen's",
    `key "acme-publish" {\n\talgorithm hmac-sha256;\n\tsecret "${secret}";\n};\n`,
    "hmac-sha256",
  ],
  [
    "one with comments and no quotes round the name",
    `// of ns1\n/* key "old" { } */ key acme-publish. { # once\nalgorithm HMAC-SHA512; secret "${secret}"; };`,
    "hmac-sha512",
  ],
  [
    "keymgr's",
    `# hmac-sha384:acme-publish:${secret}\nkey:\n  - id: acme-publish\n    algorithm: hmac-sha384\n    secret: ${secret}\n`,
    "hmac-sha384",
  ],
  [
    "Knot's with the members in another order, quoted",
    `key:\n- id: "ACME-publish."\n  secret: "${secret}"\n  algorithm: hmac-sha256\n`,
    "hmac-sha256",
  ],
])("%s is read", (_, text, algorithm) => {
  expect(parseTsigKey(text)).toEqual({ ok: true, key: { name: "acme-publish", algorithm, secret: octets } });
});

const bind = (algorithm: string, value: string): string =>
  `key "k" { algorithm ${algorithm}; secret "${value}"; };`;

test.each([
  ["nothing", "", "no key"],
  ["a secret alone", secret, "no key"],
  ["a key without a secret", 'key "k" { algorithm hmac-sha256; };', "no secret that can be used"],
  ["a short secret", bind("hmac-sha256", "YWJj"), "no secret that can be used"],
  ["a secret that is cut short", bind("hmac-sha256", secret.slice(0, 21)), "no secret that can be used"],
  ["MD5", bind("hmac-md5.sig-alg.reg.int", secret), "the algorithm hmac-md5.sig-alg.reg.int"],
  ["SHA-1", bind("hmac-sha1", secret), "the algorithm hmac-sha1"],
  ["no algorithm", `key "k" { secret "${secret}"; };`, "no algorithm"],
  ["two keys", bind("hmac-sha256", secret).repeat(2), "2 keys"],
  ["a name that is none", bind("hmac-sha256", secret).replace('"k"', '"k..k"'), 'a key named "k..k"'],
  ["a large file", "x".repeat(70_000), "70000 characters"],
  ["open braces without end", 'key "k" {'.repeat(7_000), "no key"],
])("%s is refused with what was found", (_, text, found) => {
  expect(parseTsigKey(text)).toMatchObject({ ok: false, found });
});
