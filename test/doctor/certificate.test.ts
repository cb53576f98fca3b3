// The check of the certificate: what is wrong with the one that is served, and with its renewal.
import { expect, test } from "vitest";
import type { ServedCertificate, World } from "../../src/doctor/check.ts";
import { checks } from "../../src/doctor/doctor.ts";
import { createAuthority } from "../support/certificates.ts";
import { selfSigned } from "../support/webhook-receiver.ts";
import { healthy, host } from "./world.ts";

const day = 86_400_000;
const run = async (id: "certificate", more: Partial<World>) => {
  const check = checks.find((one) => one.id === id);
  if (!check) throw new Error(`no check ${id}`);
  return check.run(healthy(more));
};

test("the certificate: self-signed, of another name, nearly expired, expired", async () => {
  const { cert } = await selfSigned({ names: [host] });
  const certificate = cert.toString();
  expect(await run("certificate", { certificate, now: Date.now() })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("self-signed"),
  });
  const other = { hostname: "other.example", publicUrl: "https://other.example" };
  expect(await run("certificate", { certificate, now: Date.now(), ...other })).toMatchObject({
    status: "fail",
    saw: "it does not name other.example",
  });
  const later = { certificate, now: Date.now() + 50 * 365 * 86_400_000 };
  expect(await run("certificate", later)).toMatchObject({
    status: "fail",
    mend: expect.stringContaining("svc cert install"),
  });
});

test("the certificate of a server whose public URL is an IPv6 address names the address", async () => {
  const { cert } = await selfSigned({ names: [host, "::1"] });
  const world = { certificate: cert.toString(), now: Date.now() };
  expect(await run("certificate", { ...world, publicUrl: "https://[::1]" })).toMatchObject({
    status: "warn",
  });
  expect(await run("certificate", { ...world, publicUrl: "https://[::2]" })).toMatchObject({
    status: "fail",
    saw: "it does not name ::2",
  });
});

test("where a proxy takes the connections to the public URL, the certificate need not name its host", async () => {
  const { cert } = await selfSigned({ names: [host] });
  const world = { certificate: cert.toString(), now: Date.now(), behindProxy: true };
  expect(await run("certificate", { ...world, publicUrl: "https://api.example" })).toMatchObject({
    status: "warn",
  });
  expect(await run("certificate", { ...world, hostname: "other.example" })).toMatchObject({
    saw: "it does not name other.example",
  });
});

test("the certificate from an ACME server: not there yet, overdue, failing, and those of tracking names", async () => {
  const own = await (await createAuthority("Test CA")).issue([host]);
  const now = Date.now();
  const issued = { certificate: own.chain, tlsMode: "acme" as const, now };
  const state = { name: host, isHost: true, renewAt: now + 1, isGivenUp: false, error: null };
  const look = (...all: Partial<ServedCertificate>[]) =>
    run("certificate", { ...issued, certificates: async () => all.map((one) => ({ ...state, ...one })) });
  expect(await look({})).toMatchObject({ status: "ok", saw: expect.stringContaining("to be renewed at") });
  expect(await look({ renewAt: now - 3 * day })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("its renewal has been due since"),
    mend: expect.stringContaining("svc cert renew"),
  });
  expect(await look({ error: "connection: refused" })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("the last attempt failed: connection: refused"),
  });
  expect(await look({}, { name: "t.b.example", isHost: false, error: "caa: no" })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("none from the ACME server for t.b.example: caa: no"),
    mend: expect.stringContaining("svc cert renew t.b.example"),
  });
  const { cert } = await selfSigned({ names: [host] });
  const missing = { ...issued, certificate: cert.toString() };
  const certificates = async () => [{ ...state, renewAt: null, error: "dns: no address" }];
  expect(await run("certificate", { ...missing, certificates })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("self-signed"),
    mend: expect.stringContaining("port 80"),
  });
});

test("files that cannot be used are told while the certificate before is served", async () => {
  const authority = await createAuthority("Test CA");
  const own = await authority.issue([host], { notAfter: new Date(Date.now() + 60 * day) });
  const state = { name: host, isHost: true, renewAt: null, isGivenUp: false };
  const certificates = async () => [{ ...state, error: "/etc/key.pem cannot be read" }];
  expect(await run("certificate", { certificate: own.chain, now: Date.now(), certificates })).toMatchObject({
    status: "warn",
    saw: expect.stringContaining("/etc/key.pem cannot be read"),
  });
});
