// The certificates of tracking names, with real files and real handshakes.
import { X509Certificate } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, createServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { silentLog } from "../../src/log.ts";
import { createNameCertificates, type NameCertificates } from "../../src/tls/name-certificates.ts";
import { keepPair } from "../../src/tls/self-signed.ts";
import { removeFolder } from "../support/folders.ts";

const deps = { clock: systemClock, log: silentLog };

function rig() {
  const dir = mkdtempSync(join(tmpdir(), "svc-names-"));
  onTestFinished(() => removeFolder(dir));
  const [files, folder] = [join(dir, "files"), join(dir, "names")];
  mkdirSync(files);
  const asked: string[] = [];
  const names = createNameCertificates({
    ...deps,
    files,
    folder: dir,
    acme: false,
    isName: async (name) => {
      asked.push(name);
      return name.startsWith("t.");
    },
  });
  return { dir, files, folder, asked, names };
}

/** The certificate that a client sees who asks for this name. */
async function shown(names: NameCertificates, servername: string): Promise<X509Certificate | null> {
  const context = await names.contextOf(servername);
  if (context === null) return null;
  const server = createServer({ SNICallback: (_name, callback) => callback(null, context) });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = (server.address() as { port: number }).port;
  const client = connect({ host: "127.0.0.1", port, servername, rejectUnauthorized: false });
  await once(client, "secureConnect");
  const { raw } = client.getPeerCertificate();
  client.destroy();
  server.close();
  return new X509Certificate(raw);
}

test("a tracking name without files gets a self-signed certificate of its own, the same one after a restart", async () => {
  const { names, folder } = rig();
  const first = await shown(names, "t.a.test");
  expect(first?.checkHost("t.a.test")).toBe("t.a.test");
  names.forget();
  expect((await shown(names, "t.a.test"))?.fingerprint256).toBe(first?.fingerprint256);
  expect((await shown(names, "t.b.test"))?.checkHost("t.b.test")).toBe("t.b.test");
  expect(readdirSync(folder).toSorted()).toEqual(["t.a.test", "t.b.test"]);
});

test("the operator's files come first, and new ones are read when it is told to", async () => {
  const { names, files, dir } = rig();
  const before = await shown(names, "t.a.test");
  await keepPair(join(dir, "own"), ["t.a.test"], deps);
  copyFileSync(join(dir, "own/cert.pem"), join(files, "t.a.test.crt"));
  copyFileSync(join(dir, "own/key.pem"), join(files, "t.a.test.key"));
  expect((await shown(names, "t.a.test"))?.fingerprint256).toBe(before?.fingerprint256);
  names.forget();
  const after = await shown(names, "t.a.test");
  expect(after?.fingerprint256).not.toBe(before?.fingerprint256);
});

test("a name that is none, or no name at all, gets nothing and leaves nothing", async () => {
  const { names, folder, asked } = rig();
  for (const name of [
    "other.test",
    "",
    "..",
    "t..",
    "t./../../etc",
    "t.a\0.test",
    "-t.a.test",
    "t",
    "t.".repeat(200),
  ])
    expect(await names.contextOf(name)).toBeNull();
  expect(asked).toEqual(["other.test"]);
  expect(existsSync(folder)).toBe(false);
});

test("a file that cannot be used is not fatal: the host's own certificate is shown", async () => {
  const { names, files } = rig();
  writeFileSync(join(files, "t.a.test.crt"), "broken");
  expect(await names.contextOf("t.a.test")).toBeNull();
});

test("files that change are read without being told; a pair that is broken leaves the one before in place", async () => {
  const { names, files, dir } = rig();
  const [cert, key] = [join(files, "t.a.test.crt"), join(files, "t.a.test.key")];
  const put = async (folder: string): Promise<void> => {
    await keepPair(join(dir, folder), ["t.a.test"], deps);
    copyFileSync(join(dir, folder, "cert.pem"), cert);
    copyFileSync(join(dir, folder, "key.pem"), key);
  };
  const own = await shown(names, "t.a.test");
  await put("first");
  await names.look();
  const first = await shown(names, "t.a.test");
  expect(first?.fingerprint256).not.toBe(own?.fingerprint256);
  writeFileSync(key, "broken");
  for (let n = 0; n < 2; n++) await names.look();
  expect((await shown(names, "t.a.test"))?.fingerprint256).toBe(first?.fingerprint256);
  await put("second");
  await names.look();
  const second = await shown(names, "t.a.test");
  expect([first?.fingerprint256, own?.fingerprint256]).not.toContain(second?.fingerprint256);
  expect(names.known()).toMatchObject([{ name: "t.a.test", source: "files" }]);
});
