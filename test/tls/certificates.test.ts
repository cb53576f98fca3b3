// The certificate of the listeners, with real files and real handshakes.
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Clock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import type { Log } from "../../src/log.ts";
import type { Certificates } from "../../src/tls/certificates.ts";
import { openCertificates } from "../../src/tls/open.ts";
import { ManualClock } from "../support/clock.ts";
import { removeFolder } from "../support/folders.ts";

const dayMs = 86_400_000;
let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "svc-tls-"));
});
afterEach(() => removeFolder(dataDir));

const selfSigned = (
  clock: Clock = systemClock,
  hostname = "mail.a.test",
  altNames: string[] = [],
): Promise<Certificates> =>
  openCertificates({
    config: { mode: "self-signed", cert: null, key: null },
    dataDir,
    hostname,
    altNames,
    clock,
    log: silentLog,
  });

const fromFiles = (cert: string | null, key: string | null, log: Log = silentLog): Promise<Certificates> =>
  openCertificates({
    config: { mode: "files", cert, key },
    dataDir,
    hostname: "mail.a.test",
    altNames: [],
    clock: systemClock,
    log,
  });

/** Another self-signed pair, under names of the test's choice. */
async function writePair(
  name: string,
  hostname = "mail.a.test",
  clock: Clock = systemClock,
): Promise<{ cert: string; key: string }> {
  const folder = join(dataDir, `pair-${name}`);
  mkdirSync(folder);
  await openCertificates({
    config: { mode: "self-signed", cert: null, key: null },
    dataDir: folder,
    hostname,
    altNames: [],
    clock,
    log: silentLog,
  });
  return { cert: join(folder, "tls", "cert.pem"), key: join(folder, "tls", "key.pem") };
}

function warnings(): { log: Log; texts: string[] } {
  const texts: string[] = [];
  return { log: { ...silentLog, warn: (_, text) => void texts.push(text) }, texts };
}

/** A TLS listener that swaps its context as the product's do. */
async function listen(
  certificates: Certificates,
): Promise<{ open: (servername: string) => Promise<TLSSocket>; close: () => void }> {
  const server = createServer({ ...certificates.current(), minVersion: "TLSv1.2" }, (socket) =>
    socket.pipe(socket),
  );
  certificates.onChange(() => server.setSecureContext(certificates.current()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : 0;
  const sockets: TLSSocket[] = [];
  return {
    async open(servername) {
      const socket = connect({ host: "127.0.0.1", port, servername, ca: certificates.current().cert });
      sockets.push(socket);
      await once(socket, "secureConnect");
      return socket;
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("a self-signed certificate is good for the host, this machine and the further names", async () => {
  const certificates = await selfSigned(systemClock, "mail.a.test", ["inbox.a.test", "192.0.2.7"]);
  const leaf = new X509Certificate(certificates.current().cert);
  expect(["mail.a.test", "localhost", "inbox.a.test"].map((name) => leaf.checkHost(name))).not.toContain(
    undefined,
  );
  expect(["127.0.0.1", "::1", "192.0.2.7"].map((address) => leaf.checkIP(address))).not.toContain(undefined);
  expect(leaf.checkHost("other.test")).toBeUndefined();
  expect(leaf.ca).toBe(false);
  const listener = await listen(certificates);
  for (const name of ["mail.a.test", "localhost"]) expect((await listener.open(name)).authorized).toBe(true);
  await expect(listener.open("other.test")).rejects.toThrow("does not match");
  listener.close();
});

test("a self-signed key is readable by us alone, and lives for 825 days", async () => {
  const clock = new ManualClock();
  const certificates = await selfSigned(clock);
  const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);
  expect([
    mode(join(dataDir, "tls")),
    mode(join(dataDir, "tls", "key.pem")),
    mode(join(dataDir, "tls", "cert.pem")),
  ]).toEqual(["700", "600", "600"]);
  const leaf = new X509Certificate(certificates.current().cert);
  expect(leaf.validFromDate.getTime()).toBeLessThan(clock.now());
  expect(leaf.validToDate.getTime() - leaf.validFromDate.getTime()).toBe(825 * dayMs);
  expect(leaf.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: "prime256v1" });
});

test("the certificate is the same after a restart", async () => {
  const first = (await selfSigned()).current();
  expect((await selfSigned()).current()).toEqual(first);
});

test("a self-signed certificate is renewed in its last 30 days, and listeners are notified", async () => {
  const clock = new ManualClock();
  const certificates = await selfSigned(clock);
  const first = certificates.current();
  let told = 0;
  certificates.onChange(() => told++);
  await clock.advance(794 * dayMs);
  expect(await certificates.reload()).toBeNull();
  expect([certificates.current(), told]).toEqual([first, 0]);
  await clock.advance(2 * dayMs);
  expect(await certificates.reload()).toBeNull();
  expect(certificates.current()).not.toEqual(first);
  expect(told).toBe(1);
});

test.each([
  ["it does not name the host of today", () => selfSigned(systemClock, "new.a.test")],
  [
    "the clock says that it is not valid yet",
    () => selfSigned(new ManualClock(Date.parse("2020-01-01T00:00:00Z"))),
  ],
  [
    "its file is cut short",
    () => (
      writeFileSync(
        join(dataDir, "tls", "cert.pem"),
        readFileSync(join(dataDir, "tls", "cert.pem"), "utf8").slice(0, 200),
      ),
      selfSigned()
    ),
  ],
  ["its key is gone", () => (rmSync(join(dataDir, "tls", "key.pem")), selfSigned())],
  [
    "a crash left the key of another",
    async () => (copyFileSync((await writePair("b")).key, join(dataDir, "tls", "key.pem")), selfSigned()),
  ],
  [
    "a crash left half of a new one",
    () => (
      writeFileSync(join(dataDir, "tls", "key.pem.new"), "half"),
      rmSync(join(dataDir, "tls", "cert.pem")),
      selfSigned()
    ),
  ],
])("a self-signed certificate is replaced if %s", async (_, open) => {
  const first = (await selfSigned()).current();
  const next = (await open()).current();
  expect(next.cert).not.toBe(first.cert);
  expect(new X509Certificate(next.cert).publicKey.export({ type: "spki", format: "pem" })).toContain(
    "PUBLIC KEY",
  );
});

test("clocks of 1970 and 2100 make certificates that are valid then", async () => {
  for (const time of ["1970-01-01T00:00:01Z", "2100-01-01T00:00:00Z"]) {
    const leaf = new X509Certificate((await selfSigned(new ManualClock(Date.parse(time)))).current().cert);
    expect(leaf.validFromDate.getTime()).toBeLessThanOrEqual(Date.parse(time));
    expect(leaf.validToDate.getTime()).toBeGreaterThan(Date.parse(time));
  }
});

test("the operator's files are shown as they are", async () => {
  const pair = await writePair("a");
  const { log, texts } = warnings();
  const certificates = await fromFiles(pair.cert, pair.key, log);
  expect(certificates.current()).toEqual({
    cert: readFileSync(pair.cert, "utf8"),
    key: readFileSync(pair.key, "utf8"),
  });
  expect(texts).toEqual([]);
});

test.each([
  ["a file is missing", (a: Pair) => fromFiles(`${a.cert}.gone`, a.key), /cert\.pem\.gone cannot be read/],
  ["a file is not named", (a: Pair) => fromFiles(a.cert, null), /tls\.key/],
  [
    "the key is another's",
    (a: Pair, b: Pair) => fromFiles(a.cert, b.key),
    /pair-b.*key\.pem is not the key of .*pair-a/,
  ],
  ["the two are swapped", (a: Pair) => fromFiles(a.key, a.cert), /key\.pem is not a certificate in PEM form/],
  [
    "the certificate is no PEM",
    (a: Pair) => (writeFileSync(a.cert, "hello"), fromFiles(a.cert, a.key)),
    /cert\.pem is not a certificate/,
  ],
  [
    "the key has a passphrase",
    (a: Pair) => (writeFileSync(a.key, lockedKey()), fromFiles(a.cert, a.key)),
    /without a passphrase/,
  ],
  [
    "the chain is broken further down",
    (a: Pair) => (
      writeFileSync(
        a.cert,
        `${readFileSync(a.cert, "utf8")}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
      ),
      fromFiles(a.cert, a.key)
    ),
    /cert\.pem cannot be used by TLS/,
  ],
])("the start fails in plain words where %s", async (_, open, words) => {
  const [a, b] = [await writePair("a"), await writePair("b")];
  await expect(open(a, b)).rejects.toThrow(words);
});
interface Pair {
  cert: string;
  key: string;
}
const lockedKey = (): string =>
  generateKeyPairSync("ec", { namedCurve: "P-256" })
    .privateKey.export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "secret" })
    .toString();

test("an expired certificate, or one of another host, is shown with a warning", async () => {
  const old = await writePair("old", "mail.a.test", new ManualClock(Date.parse("2001-01-01T00:00:00Z")));
  const foreign = await writePair("foreign", "other.test");
  for (const [pair, word] of [[old, "valid"] as const, [foreign, "name"] as const]) {
    const { log, texts } = warnings();
    await fromFiles(pair.cert, pair.key, log);
    expect(texts).toEqual([expect.stringContaining(word)]);
  }
});

test("a renewal on disk reaches new sessions, and the old ones live on", async () => {
  const [a, b] = [await writePair("a"), await writePair("b")];
  const certificates = await fromFiles(a.cert, a.key);
  const listener = await listen(certificates);
  const early = await listener.open("mail.a.test");
  copyFileSync(b.cert, a.cert);
  copyFileSync(b.key, a.key);
  expect(await certificates.reload()).toBeNull();
  const late = await listener.open("mail.a.test");
  expect(late.getPeerX509Certificate()?.fingerprint256).not.toBe(
    early.getPeerX509Certificate()?.fingerprint256,
  );
  early.write("still here");
  expect(String((await once(early, "data"))[0])).toBe("still here");
  listener.close();
});

test("an unusable renewal changes nothing and says why; who has left hears of none", async () => {
  const [a, b] = [await writePair("a"), await writePair("b")];
  const certificates = await fromFiles(a.cert, a.key);
  const first = certificates.current();
  const told: string[] = [];
  certificates.onChange(() => told.push("stays"));
  const leave = certificates.onChange(() => told.push("leaves"));
  leave();
  copyFileSync(b.cert, a.cert); // the key is not there yet
  const problem = await certificates.reload();
  expect(problem?.message).toContain("is not the key of");
  expect([certificates.current(), told]).toEqual([first, []]);
  copyFileSync(b.key, a.key);
  expect(await certificates.reload()).toBeNull();
  expect(await certificates.reload()).toBeNull();
  expect(told).toEqual(["stays"]);
});

test("a folder that cannot be written is an error at the start", async () => {
  writeFileSync(join(dataDir, "tls"), "a file in the way");
  chmodSync(join(dataDir, "tls"), 0o600);
  await expect(selfSigned()).rejects.toThrow();
});
