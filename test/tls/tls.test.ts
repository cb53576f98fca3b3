// The certificate in the running program: its reload, and what is logged of it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Config } from "../../src/config.ts";
import { silentLog, type Log } from "../../src/log.ts";
import { openTls } from "../../src/tls/tls.ts";

async function open(given: Omit<Config["tls"], "trackingCertificates">, dataDir: string) {
  const logged: string[] = [];
  const write = (level: string) => (_fields: object, text: string) => void logged.push(`${level}: ${text}`);
  const log: Log = { ...silentLog, info: write("info"), error: write("error") };
  const tls = { ...given, trackingCertificates: null };
  const config = { tls, dataDir, hostname: "mail.a.test" };
  const isTrackingName = () => Promise.resolve(false);
  return { logged, tls: await openTls({ config, isTrackingName, clock: systemClock, log }) };
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("without TLS there is no certificate, and a reload is not an error", async () => {
  const { tls, logged } = await open({ mode: "off", cert: null, key: null }, "/nowhere");
  expect(tls.certificates).toBeNull();
  await tls.reload();
  expect(logged).toEqual(["info: reloaded the certificates"]);
});

test("the daily job reloads; an unusable certificate is logged as an error, and the old one stays", async () => {
  const dataDir = newFolder();
  await open({ mode: "self-signed", cert: null, key: null }, dataDir);
  const [cert, key] = [join(dataDir, "tls", "cert.pem"), join(dataDir, "tls", "key.pem")];
  const { tls, logged } = await open({ mode: "files", cert, key }, dataDir);
  const before = tls.certificates?.current();
  writeFileSync(cert, "broken");
  const [job] = tls.jobs;
  expect(job).toMatchObject({ name: "renew-certificates", cron: "17 4 * * *" });
  await job?.run();
  expect(tls.certificates?.current()).toEqual(before);
  expect(logged).toEqual(["error: the new certificate is unusable; the old one stays"]);
});
