import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { signature, signatureHeaders } from "../../src/webhooks/signature.ts";

const secret = "0123456789abcdef".repeat(4);
const body = Buffer.from('{"event":"message.delivered","subject":"Grüße, 世界"}');

test("signs timestamp, period and raw UTF-8 bytes with the secret's own characters as key (vector made with openssl dgst -hmac)", () => {
  expect(signature(secret, 1795770922, body)).toBe(
    "sha256=72e90488cc8a7f1ffeaf14089227510e551eee5b78ce7d68a050197375fc0d02",
  );
});

test("the timestamp is whole epoch seconds and the one that is signed", () => {
  const headers = signatureHeaders(
    { secret, previousSecret: null, previousSecretUntil: null, format: "svc" },
    { id: "evt_1", body },
    1795770922_999,
  );
  expect(headers).toEqual({
    "X-Svc-Timestamp": "1795770922",
    "X-Svc-Signature": signature(secret, 1795770922, body),
  });
});

test("the old secret signs too until the overlap of a rotation ends, and not at its end", () => {
  const endpoint = {
    secret,
    previousSecret: "f".repeat(64),
    previousSecretUntil: 2_000,
    format: "svc" as const,
  };
  expect(signatureHeaders(endpoint, { id: "evt_1", body }, 1_999)["X-Svc-Signature-Previous"]).toBe(
    signature("f".repeat(64), 1, body),
  );
  expect(signatureHeaders(endpoint, { id: "evt_1", body }, 2_000)).not.toHaveProperty(
    "X-Svc-Signature-Previous",
  );
});

test.each(["svc", "standard", "both"] as const)("format %s has its headers and no others", (format) => {
  const endpoint = { secret, previousSecret: null, previousSecretUntil: null, format };
  const names = Object.keys(signatureHeaders(endpoint, { id: "evt_1", body }, 1_000)).join(" ");
  const [own, standard] = [
    "X-Svc-Timestamp X-Svc-Signature",
    "webhook-id webhook-timestamp webhook-signature",
  ];
  expect(names).toBe({ svc: own, standard, both: `${own} ${standard}` }[format]);
});

test("the library of Standard Webhooks takes ours, under the new secret and the old one, and no other body", () => {
  const old = "f".repeat(64);
  const now = Date.now();
  const endpoint = { secret, previousSecret: old, previousSecretUntil: now + 1000, format: "both" as const };
  const headers = signatureHeaders(endpoint, { id: "evt_1", body }, now);
  expect(headers["webhook-signature"]).toMatch(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/);
  for (const key of [secret, old]) {
    const webhook = new Webhook(`whsec_${Buffer.from(key).toString("base64")}`);
    expect(webhook.verify(body.toString(), headers)).toEqual(JSON.parse(body.toString()));
    expect(() => webhook.verify(`${body.toString()} `, headers)).toThrow("signature");
  }
});
