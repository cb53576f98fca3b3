// The certificates in the running program: what its job notices, what the operator is told of, and what is installed.
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Config, ListenAddress } from "../../src/config.ts";
import type { Https } from "../../src/https.ts";
import { silentLog, type Log } from "../../src/log.ts";
import type { CertificateTrouble } from "../../src/tls/states.ts";
import { openTls } from "../../src/tls/tls.ts";
import { createAuthority, type Authority, type Identity } from "../support/certificates.ts";
import { removeFolder } from "../support/folders.ts";

const host = "mail.a.test";
let authority: Authority;
let [one, two]: Identity[] = [];

beforeAll(async () => {
  authority = await createAuthority("Test CA");
  [one, two] = [await authority.issue([host]), await authority.issue([host])];
});

async function open(
  given: Pick<Config["tls"], "mode" | "cert" | "key">,
  dataDir: string,
  https: Https = () => Promise.reject(new Error("nothing is asked")),
  httpListen: ListenAddress[] = [],
) {
  const logged: string[] = [];
  const troubles: CertificateTrouble[] = [];
  const write = (level: string) => (_fields: object, text: string) => void logged.push(`${level}: ${text}`);
  const log: Log = { ...silentLog, info: write("info"), error: write("error") };
  const tls = await openTls({
    config: {
      tls: {
        ...given,
        trackingCertificates: null,
        acme: {
          email: null,
          directory: "https://acme.test/dir",
          eabKeyId: null,
          eabMacKeyFile: null,
          httpListen,
        },
      },
      dataDir,
      hostname: host,
      publicUrl: `https://${host}`,
      operations: { email: null, from: null },
      http: { trustedProxies: [] },
    },
    isTrackingName: () => Promise.resolve(false),
    trackingNames: () => Promise.resolve([]),
    https,
    clock: systemClock,
    log,
  });
  tls.onTrouble((trouble) => troubles.push(trouble));
  return { logged, tls, troubles, look: async () => tls.jobs[0]?.run() };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-tls-"));
  onTestFinished(() => removeFolder(folder));
  return folder;
}

/** Files as the operator keeps them. */
async function withFiles() {
  const folder = newFolder();
  const [cert, key] = [join(folder, "host.crt"), join(folder, "host.key")];
  writeFileSync(cert, one?.chain ?? "");
  writeFileSync(key, one?.key ?? "");
  return { cert, key, ...(await open({ mode: "files", cert, key }, newFolder())) };
}

test("without TLS there is no certificate, and a reload is not an error", async () => {
  const { tls, logged } = await open({ mode: "off", cert: null, key: null }, "/nowhere");
  expect([tls.certificates, await tls.list()]).toEqual([null, []]);
  await tls.reload();
  expect(logged).toEqual(["info: reloaded the certificates"]);
});

test("at a reload an unusable certificate is logged as an error, and the old one stays", async () => {
  const { tls, logged, cert } = await withFiles();
  writeFileSync(cert, "broken");
  await tls.reload();
  expect(tls.certificates?.current().cert).toBe(one?.chain);
  expect(logged).toEqual(["error: the new certificate is unusable; the old one stays"]);
});

test("files that change are noticed by the job of each minute, without a reload", async () => {
  const { tls, cert, key, look } = await withFiles();
  let told = 0;
  tls.certificates?.onChange(() => told++);
  expect(tls.jobs).toMatchObject([{ name: "renew-certificates", cron: "* * * * *" }]);
  await look();
  expect(told).toBe(0);
  writeFileSync(cert, two?.chain ?? "");
  writeFileSync(key, two?.key ?? "");
  await look();
  expect([told, tls.certificates?.current()]).toEqual([1, { cert: two?.chain, key: two?.key }]);
});

test("a pair that stays broken is told to the operator once, and the old one is served on; half a renewal is not", async () => {
  const { tls, cert, key, look, troubles } = await withFiles();
  writeFileSync(cert, two?.chain ?? "");
  await look();
  expect(troubles).toEqual([]);
  expect(tls.troubles()).toMatchObject([{ name: host, error: expect.stringContaining("is not the key of") }]);
  for (let n = 0; n < 3; n++) await look();
  expect(troubles).toEqual([
    {
      name: host,
      isHost: true,
      error: expect.stringContaining("is not the key of"),
      nextAt: null,
      until: tls.certificates?.shown().pair.validUntil,
    },
  ]);
  expect(tls.certificates?.current().cert).toBe(one?.chain);
  expect(await tls.list()).toMatchObject([
    { name: host, source: "files", error: expect.stringContaining("key") },
  ]);
  writeFileSync(key, two?.key ?? "");
  await look();
  expect([tls.certificates?.current().cert, tls.troubles()]).toEqual([two?.chain, []]);
});

test("an installed certificate is served at once in place of the self-signed one, and after a restart", async () => {
  const dataDir = newFolder();
  const { tls } = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  let told = 0;
  tls.certificates?.onChange(() => told++);
  expect(await tls.list()).toMatchObject([{ source: "self-signed" }]);
  await tls.install(one?.chain ?? "", one?.key ?? "");
  expect([told, await tls.list()]).toMatchObject([1, [{ name: host, source: "installed", isHost: true }]]);
  expect(statSync(join(dataDir, "tls/installed.pem")).mode & 0o777).toBe(0o600);
  const again = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  expect(again.tls.certificates?.shown().pair.leaf.serialNumber).toBe(
    tls.certificates?.shown().pair.leaf.serialNumber,
  );
  // Without the key in the text that others read.
  expect(again.tls.certificates?.current().cert).not.toContain("PRIVATE KEY");
});

test("two installations at once are made one after the other", async () => {
  const dataDir = newFolder();
  const { tls } = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  await Promise.all([one, two, one, two].map((given) => tls.install(given?.chain ?? "", given?.key ?? "")));
  expect(tls.certificates?.current()).toEqual({ cert: two?.chain, key: two?.key });
  await expect(tls.install("broken", "")).rejects.toThrow();
  await tls.install(one?.chain ?? "", one?.key ?? "");
  expect(tls.certificates?.current().cert).toBe(one?.chain);
});

test("a certificate whose text has another key too is installed without it", async () => {
  const dataDir = newFolder();
  const { tls } = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  await tls.install(`${two?.key ?? ""}${one?.chain ?? ""}`, one?.key ?? "");
  expect(await tls.list()).toMatchObject([{ name: host, source: "installed" }]);
});

test.each([
  ["acme", `acme-${host}.pem`],
  ["self-signed", "installed.pem"],
] as const)(
  "with tls.mode %s, a stored certificate that cannot be read any more is served on, and not one that is self-signed",
  async (mode, name) => {
    const dataDir = newFolder();
    const file = join(dataDir, "tls", name);
    mkdirSync(join(dataDir, "tls"));
    writeFileSync(file, `${one?.chain ?? ""}${one?.key ?? ""}`);
    const { tls, troubles, look } = await open({ mode, cert: null, key: null }, dataDir);
    const { serialNumber } = tls.certificates?.shown().pair.leaf ?? {};
    writeFileSync(file, "broken");
    await look();
    await look();
    expect(tls.certificates?.shown().pair.leaf.serialNumber).toBe(serialNumber);
    expect(troubles).toMatchObject([{ name: host, error: expect.stringContaining(name) }]);
    // At a start there is none to serve on: it must not be kept from starting.
    const again = await open({ mode, cert: null, key: null }, dataDir);
    expect(again.tls.certificates?.shown().source).toBe("self-signed");
  },
);

test("what was installed is served with tls.mode acme until the ACME server has issued", async () => {
  const dataDir = newFolder();
  const before = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  await before.tls.install(one?.chain ?? "", one?.key ?? "");
  const { tls, look } = await open({ mode: "acme", cert: null, key: null }, dataDir);
  expect(await tls.list()).toMatchObject([{ name: host, source: "installed" }]);
  writeFileSync(join(dataDir, "tls", `acme-${host}.pem`), `${two?.chain ?? ""}${two?.key ?? ""}`);
  await look();
  expect(tls.certificates?.shown()).toMatchObject({ source: "acme", pair: { cert: two?.chain } });
});

test("where files are configured, a certificate is installed into them", async () => {
  const { tls, cert, key } = await withFiles();
  await tls.install(two?.chain ?? "", two?.key ?? "");
  expect([readFileSync(cert, "utf8"), readFileSync(key, "utf8")]).toEqual([two?.chain, two?.key]);
  expect(tls.certificates?.current().cert).toBe(two?.chain);
});

test("an installation into files that was killed between the two is finished by the next start", async () => {
  const { cert, key } = await withFiles();
  writeFileSync(`${cert}.new`, two?.chain ?? "");
  writeFileSync(key, two?.key ?? "");
  const { tls } = await open({ mode: "files", cert, key }, newFolder());
  expect(tls.certificates?.current()).toEqual({ cert: two?.chain, key: two?.key });
  expect(readFileSync(cert, "utf8")).toBe(two?.chain);
  writeFileSync(`${cert}.new`, one?.chain ?? "");
  writeFileSync(cert, "broken");
  await expect(open({ mode: "files", cert, key }, newFolder())).rejects.toThrow(/is not a certificate/);
});

test("files that the service may not write are said to be the operator's to write", async () => {
  const { tls, cert, key } = await withFiles();
  mkdirSync(`${key}.new`);
  await expect(tls.install(two?.chain ?? "", two?.key ?? "")).rejects.toThrow(
    /may not write the files of tls\.cert and tls\.key .*put them there as root/,
  );
  expect([readFileSync(cert, "utf8"), tls.certificates?.current().cert]).toEqual([one?.chain, one?.chain]);
});

test("a reload that is asked for while another one reads sees what was put in place between", async () => {
  const { tls, cert, key } = await withFiles();
  const early = tls.certificates?.reload();
  writeFileSync(cert, two?.chain ?? "");
  writeFileSync(key, two?.key ?? "");
  await tls.certificates?.reload();
  await early;
  expect(tls.certificates?.current().cert).toBe(two?.chain);
});

test.each([
  ["the key is another's", async () => [one?.chain, two?.key], /the key is not the key of/],
  [
    "it is no certificate",
    async () => ["hello", one?.key],
    /the certificate is not a certificate in PEM form/,
  ],
  [
    "it names another host",
    async () => pairOf(await authority.issue(["other.test"])),
    /does not name mail\.a\.test: it is for DNS:other\.test/,
  ],
  [
    "it has expired",
    async () => pairOf(await authority.issue([host], { notAfter: new Date(Date.now() - 3_600_000) })),
    /expired at/,
  ],
] as const)("a certificate is not installed if %s, and nothing changes", async (_, make, words) => {
  const { tls, cert } = await withFiles();
  const [chain = "", key = ""] = await make();
  await expect(tls.install(chain, key)).rejects.toThrow(words);
  expect([tls.certificates?.current().cert, readFileSync(cert, "utf8")]).toEqual([one?.chain, one?.chain]);
});
const pairOf = ({ chain, key }: Identity) => [chain, key];

test("a broken installed certificate does not keep the service from starting", async () => {
  const dataDir = newFolder();
  const { tls } = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  await tls.install(one?.chain ?? "", one?.key ?? "");
  copyFileSync(join(dataDir, "tls/cert.pem"), join(dataDir, "tls/installed.pem"));
  const again = await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  expect(await again.tls.list()).toMatchObject([{ source: "self-signed" }]);
});

test("without an ACME server no certificate is ordered", async () => {
  const { tls } = await withFiles();
  expect(await tls.renew(null)).toEqual({
    reason: "refused",
    text: "the option tls.mode is files: only with acme are certificates ordered",
  });
});

test("the start waits for no ACME server: a self-signed certificate is served, and the stop ends what is asked", async () => {
  const asked: AbortSignal[] = [];
  const https: Https = ({ signal }) => {
    asked.push(signal);
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  };
  const { tls } = await open({ mode: "acme", cert: null, key: null }, newFolder(), https);
  await tls.start();
  expect(await tls.list()).toMatchObject([{ name: host, source: "self-signed", renewAt: null, failures: 0 }]);
  while (asked.length === 0) await new Promise((next) => setImmediate(next));
  await tls.stop();
  expect(asked[0]?.aborted).toBe(true);
});

test("the look at the files of each minute waits for no order that is under way", async () => {
  const https: Https = ({ signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
  const { tls, look } = await open({ mode: "acme", cert: null, key: null }, newFolder(), https);
  await tls.start();
  await look();
  await look();
  expect(await tls.list()).toMatchObject([{ name: host, error: null }]);
  await tls.stop();
});

test("with an ACME server no certificate is installed by hand", async () => {
  const { tls } = await open({ mode: "acme", cert: null, key: null }, newFolder());
  await expect(tls.install(one?.chain ?? "", one?.key ?? "")).rejects.toThrow(/tls\.mode is acme/);
});

test("where one address of port 80 is taken, what became of the orders at another is shown beside it", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  const listen = [port, 0].map((at) => ({ host: "127.0.0.1", port: at }));
  const acme = { mode: "acme", cert: null, key: null } as const;
  const https: Https = () => Promise.reject(new Error("no such server"));
  const { tls, look } = await open(acme, newFolder(), https, listen);
  onTestFinished(() => tls.stop());
  await tls.start();
  await look();
  await expect
    .poll(async () => (await tls.list())[0]?.error)
    .toMatch(/^tls\.acme\.http_listen: .* is in use by another program.*; .*no such server/);
});

test("with port 80 taken it starts, orders nothing, tells the operator once, and orders once the port is free", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const asked = Promise.withResolvers<void>();
  let requests = 0;
  const https: Https = () => {
    requests += 1;
    asked.resolve();
    return Promise.reject(new Error("no such server"));
  };
  const acme = { mode: "acme", cert: null, key: null } as const;
  const { tls, look, troubles } = await open(acme, newFolder(), https, [{ host: "127.0.0.1", port }]);
  onTestFinished(() => tls.stop());
  await tls.start();
  const said = expect.stringContaining(
    `tls.acme.http_listen: 127.0.0.1:${port} is in use by another program`,
  );
  expect(tls.certificates?.shown().source).toBe("self-signed");
  expect(tls.closed()).toMatchObject([{ listen: { port } }]);
  expect(tls.troubles()).toMatchObject([{ name: host, isHost: true, error: said, until: null }]);
  expect(await tls.list()).toMatchObject([{ name: host, error: said }]);
  const refused = {
    reason: "refused",
    text: expect.stringMatching(/^nothing is ordered .* by another program/),
  };
  expect(await tls.renew(null)).toEqual(refused);
  for (let n = 0; n < 3; n++) await look();
  expect(troubles).toMatchObject([{ name: host, error: said, nextAt: expect.any(Number) }]);
  expect(requests).toBe(0);

  await new Promise((done) => other.close(done));
  await look();
  await asked.promise;
  expect([tls.closed(), tls.addresses()]).toEqual([[], [{ name: "acme", address: `127.0.0.1:${port}` }]]);
  expect(tls.troubles().filter(({ error }) => error.includes("http_listen"))).toEqual([]);
});
