import { expect, test } from "vitest";
import { Refusal } from "../../src/errors.ts";
import type { Names } from "./rig.ts";
import { rig } from "./rig.ts";

async function problem(url: string, names: Names = {}, allowNetworks: string[] = []): Promise<string | null> {
  try {
    await rig({ allowNetworks }, names).webhooks.checkUrl(url);
    return null;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    expect(error.code).toBe("validation_failed");
    expect(error.extras.errors).toEqual([
      { field: "url", code: "validation_failed", issue: expect.any(String) },
    ]);
    return error.message;
  }
}

test.each([
  "",
  "no url",
  "http://hooks.example/",
  "ftp://hooks.example/",
  "file:///etc/passwd",
  "javascript:alert(1)",
  "https:hooks.example",
  "https:/\\hooks.example/",
  "https://",
  "https:///path",
  "https://user@hooks.example/",
  "https://user:pass@hooks.example/",
  "https://@hooks.example/",
  "https://hooks.example/#part",
  "https://hooks.example/#",
  "https://hooks.example:0/",
  "https://hooks.example:25/",
  "https://hooks.example:99999/",
  "https://hooks.example/a b",
  "https://hooks.example/a\r\nX-Evil: 1",
  " https://hooks.example/",
  "https://hooks\u200b.example/",
  `https://hooks.example/${"a".repeat(2048)}`,
])("refuses the form of %.60j", async (url) => {
  expect(await problem(url)).not.toBeNull();
});

test.each([
  "https://localhost/",
  "https://LOCALHOST./",
  "https://api.localhost/",
  "https://127.0.0.1/",
  "https://127.0.0.1./",
  "https://127.1/",
  "https://0x7f000001/",
  "https://2130706433/",
  "https://0177.0.0.1/",
  "https://127。0。0。1/",
  "https://①②⑦.0.0.1/",
  "https://%31%32%37.0.0.1/",
  "https://[::1]/",
  "https://[::]/",
  "https://[::ffff:127.0.0.1]:8443/",
  "https://[::ffff:a9fe:a9fe]/",
  "https://[64:ff9b::7f00:1]/",
  "https://[64:ff9b:1::7f00:1]/",
  "https://[2002:7f00:1::]/",
  "https://[fd00::1]/",
  "https://[fe80::1]/",
  "https://[fe80::1%25eth0]/",
  "https://[ff02::1]/",
  "https://10.0.0.1/",
  "https://172.16.0.1/",
  "https://192.168.1.1/",
  "https://100.64.0.1/",
  "https://169.254.169.254/latest/meta-data",
  "https://0.0.0.0/",
  "https://224.0.0.1/",
  "https://240.0.0.1/",
  "https://255.255.255.255/",
  "https://192.0.0.1/",
  "https://198.18.0.1/",
])("refuses an address that is not public, however it is spelt: %s", async (url) => {
  expect(await problem(url)).not.toBeNull();
});

test.each([
  ["loopback.test", { "loopback.test": { a: ["127.0.0.1"] } }],
  ["mixed.test", { "mixed.test": { a: ["93.184.215.14", "10.0.0.1"] } }],
  ["six.test", { "six.test": { a: ["93.184.215.14"], aaaa: ["::ffff:127.0.0.1"] } }],
  ["dot.test.", { "dot.test": { a: ["127.0.0.1"] } }],
])("refuses a name of which any address is not public: %s", async (name, names) => {
  expect(await problem(`https://${name}/`, names)).toContain("not a public address");
});

test("accepts public names and addresses, with a port, a path and a query", async () => {
  const names = {
    "hooks.example": { a: ["93.184.215.14"], aaaa: ["2606:2800:21f:cb07:6820:80da:af6b:8b2c"] },
  };
  expect(await problem("https://hooks.example:8443/in?from=svc", names)).toBeNull();
  expect(await problem("https://93.184.215.14/")).toBeNull();
  expect(
    await problem("https://bücher.example/", { "xn--bcher-kva.example": { a: ["93.184.215.14"] } }),
  ).toBeNull();
});

test("accepts a name that does not resolve, or that nobody can tell: it fails at delivery", async () => {
  expect(await problem("https://not-yet.example/")).toBeNull();
  expect(await problem("https://broken.example/", { "broken.example": null })).toBeNull();
});

test("accepts what the operator allows, and nothing beside it", async () => {
  expect(await problem("https://127.1:8443/", {}, ["127.0.0.0/8"])).toBeNull();
  expect(await problem("https://localhost:8443/", {}, ["127.0.0.0/8"])).toBeNull();
  expect(await problem("https://[fd00::1]/", {}, ["fd00::/8"])).toBeNull();
  expect(await problem("https://10.0.0.1/", {}, ["127.0.0.0/8"])).not.toBeNull();
});
