import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Clock } from "../../src/clock.ts";
import { fakeDaemon, scratch, svc } from "./world.ts";

/** Waits take no time. */
const atOnce: Clock = {
  now: () => 0,
  monotonic: () => 0,
  after(_ms, run) {
    setImmediate(run);
    return { cancel: () => undefined };
  },
};

const certificate = {
  name: "mail.acme.example",
  source: "acme",
  names: "DNS:mail.acme.example",
  issuer: "CN=Some CA",
  serial: "0a",
  not_before: "2026-11-01T00:00:00.000Z",
  not_after: "2027-01-30T00:00:00.000Z",
  listeners: ["http 443", "smtp 587"],
  renew_at: "2026-12-30T00:00:00.000Z",
  renewing: false,
  failures: 0,
  last_error: null,
  next_attempt_at: "2026-12-30T00:00:00.000Z",
};
const other = {
  ...certificate,
  name: "t.acme.example",
  source: "self-signed",
  last_error: "dns: \u001b[2Jno",
};
const shown = { "GET /v1/certificates": { json: { data: [certificate, other] } } };

test("the certificates are listed, and one is shown with all of its facts", async () => {
  const { socket } = await fakeDaemon(shown);
  const list = await svc(["cert", "show"], { socket });
  expect(list.code).toBe(0);
  expect(list.out).toContain("mail.acme.example\tacme\t2027-01-30 00:00:00Z\t2026-12-30 00:00:00Z");
  expect(list.out).not.toContain("\u001b");
  const one = await svc(["certs", "show", "T.acme.example"], { socket });
  expect(one.out).toContain("self-signed");
  expect(JSON.parse((await svc(["cert", "show", "mail.acme.example", "--json"], { socket })).out)).toEqual(
    certificate,
  );
  expect(JSON.parse((await svc(["cert", "show", "--json"], { socket })).out)).toEqual({
    data: [certificate, other],
  });
  expect((await svc(["cert", "show", "no.example"], { socket })).code).toBe(3);
});

test("a renewal is waited for; one that fails is exit 1, with the reason and when it is tried again", async () => {
  const closed = "tls.acme.http_listen: 0.0.0.0:80 is in use by another program";
  for (const [last_error, serial, code] of [
    [null, "0b", 0],
    [closed, "0b", 0], // it came by another address
    ["connection: refused", certificate.serial, 1],
  ] as const) {
    let looks = 0;
    const { socket, seen } = await fakeDaemon({
      "POST /v1/certificates/renew": { status: 202, json: { data: [{ ...certificate, renewing: true }] } },
      "GET /v1/certificates": () => {
        looks += 1;
        return { json: { data: [{ ...certificate, renewing: looks < 3, serial, last_error }] } };
      },
    });
    const ran = await svc(["cert", "renew", "--json"], { socket, clock: atOnce });
    expect([ran.code, looks, seen[0]?.body]).toEqual([code, 3, {}]);
    if (code === 0) expect(JSON.parse(ran.out)).toMatchObject({ serial: "0b" });
    else
      expect(ran.err).toMatch(
        /connection: refused[^]*The one before is served on\. It is tried again at 2026/,
      );
  }
});

test("an order that a stop of the service has ended is no success", async () => {
  const { socket } = await fakeDaemon({
    "POST /v1/certificates/renew": { status: 202, json: { data: [{ ...certificate, renewing: true }] } },
    "GET /v1/certificates": { json: { data: [certificate] } },
  });
  const ran = await svc(["cert", "renew"], { socket, clock: atOnce });
  expect([ran.code, ran.out, ran.err]).toEqual([1, "", expect.stringContaining("stopped before the order")]);
});

test("what is refused has the exit code of its kind", async () => {
  const { socket } = await fakeDaemon({
    "POST /v1/certificates/renew": {
      status: 409,
      json: { code: "conflict", detail: "The option tls.mode is files." },
    },
  });
  const ran = await svc(["cert", "renew"], { socket });
  expect([ran.code, ran.err]).toEqual([5, expect.stringContaining("The option tls.mode is files.")]);
});

test("a certificate and its key are read from files, and never from flags", async () => {
  const { socket, seen } = await fakeDaemon({
    "POST /v1/certificates/install": { json: { data: [{ ...certificate, source: "installed" }] } },
  });
  const folder = scratch();
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, "-----BEGIN CERTIFICATE-----\nAA\n-----END CERTIFICATE-----\n");
  writeFileSync(key, "-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\n");
  const ran = await svc(["cert", "install", "--cert", cert, "--key", key], { socket });
  expect([ran.code, ran.out]).toEqual([0, expect.stringContaining("installed")]);
  expect(Object.keys(Object(seen[0]?.body))).toEqual(["certificate", "private_key"]);
  expect(
    (await svc(["cert", "install", "--cert", join(folder, "none"), "--key", key], { socket })).code,
  ).toBe(2);
  expect((await svc(["cert", "install", "--cert", cert], { socket })).code).toBe(2);
});
