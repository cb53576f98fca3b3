// Why a receiver refuses a request: each change that requests suffer is found and named. Requests are signed here by the
// API's reference, not by the product.
import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import { verifyWebhook, type ReceivedWebhook } from "../../src/webhooks/verify.ts";

const secret = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
const at = 1_764_233_122;
const body = Buffer.from('{"event":"message.bounced","data":{"subject":"Grüße"}}');

const digestOf = (key: string | Buffer, signed: string, bytes: Buffer, form: "hex" | "base64"): string =>
  createHmac("sha256", key).update(signed).update(bytes).digest(form);
const ours = (key = secret): [string, string][] => [
  ["x-svc-timestamp", String(at)],
  ["x-svc-signature", `sha256=${digestOf(key, `${at}.`, body, "hex")}`],
];
const standard = (key = secret): [string, string][] => [
  ["webhook-id", "evt_1"],
  ["webhook-timestamp", String(at)],
  ["webhook-signature", `v1,${digestOf(key, `evt_1.${at}.`, body, "base64")}`],
];

function causes(headers: [string, string][], change: Partial<ReceivedWebhook> = {}) {
  const verdict = verifyWebhook({ headers: new Map(headers), body, secret, nowMs: at * 1000, ...change });
  return { valid: verdict.valid, causes: verdict.findings.map(({ cause }) => cause), said: verdict.findings };
}

test.each([
  ["ours", ours()],
  ["that of Standard Webhooks", standard()],
  ["both", [...ours(), ...standard()]],
])("a request with the right signature is valid: %s", (_form, headers) => {
  expect(causes(headers)).toEqual({ valid: true, causes: [], said: [] });
});

test.each<[string, Buffer]>([
  ["a line end at its end", Buffer.concat([body, Buffer.from("\n")])],
  ["parsed and written again", Buffer.from(JSON.stringify(JSON.parse(body.toString()), null, 2))],
  ["read as Latin-1", Buffer.from(body.toString("latin1"), "utf8")],
  ["a byte order mark", Buffer.concat([Buffer.from("\uFEFF"), body])],
])("a body that was changed is told from a wrong secret: %s", (_change, changed) => {
  for (const headers of [ours(), standard()])
    expect(causes(headers, { body: changed })).toMatchObject({ valid: false, causes: ["body_changed"] });
});

test.each([
  ["white space", ` ${secret}\t`],
  ["quotes", `"${secret}"`],
  ["the form of Standard Webhooks", `whsec_${Buffer.from(secret).toString("base64")}`],
])("a secret that is right but for %s is named", (_change, given) => {
  for (const headers of [ours(), standard()])
    expect(causes(headers, { secret: given })).toMatchObject({ valid: false, causes: ["secret_wrong"] });
});

test("a body that is one long run of line ends is judged in one pass", () => {
  const run = Buffer.from(`{${"\r\n".repeat(500_000)}}`);
  expect(causes(ours(), { body: run }).causes).toEqual(["body_or_secret"]);
  const added = Buffer.concat([body, Buffer.alloc(100_000, "\r\n")]);
  expect(causes(ours(), { body: added }).causes).toEqual(["body_changed"]);
});

test("what no known change explains is left open, and a secret of another length is pointed at", () => {
  const other = causes(ours("another"), {});
  expect(other).toMatchObject({ valid: false, causes: ["body_or_secret"] });
  expect(causes(ours(), { secret: "short" }).said[0]?.said).toContain("5 characters, and one of svc has 64");
  expect(causes(ours(), { body: Buffer.from("{}") }).causes).toEqual(["body_or_secret"]);
});

test("during a rotation the old secret is valid, and said to be old", () => {
  const previous = ours("the secret before".padEnd(64, "x"))[1]?.[1] ?? "";
  const headers: [string, string][] = [...ours(), ["x-svc-signature-previous", previous]];
  expect(causes(headers, { secret: "the secret before".padEnd(64, "x") })).toMatchObject({
    valid: true,
    causes: ["old_secret"],
  });
  const [, , [name, value] = ["", ""]] = standard();
  const [, , [, old] = ["", ""]] = standard("old");
  const both: [string, string][] = [...standard().slice(0, 2), [name, `${old} ${value}`]];
  expect(causes(both)).toMatchObject({ valid: true, causes: [] });
});

test("a time more than five minutes off is refused, either way, beside what else is wrong", () => {
  const later = (seconds: number) => causes(ours(), { nowMs: (at + seconds) * 1000 });
  expect(later(300)).toMatchObject({ valid: true });
  expect(later(301)).toMatchObject({ valid: false, causes: ["too_old"] });
  expect(later(-301)).toMatchObject({ valid: false, causes: ["too_new"] });
  expect(causes(ours("x"), { nowMs: (at + 900) * 1000 }).causes).toEqual(["body_or_secret", "too_old"]);
});

test("missing headers, milliseconds and values in another form are named", () => {
  const [time, sign] = ours();
  if (!time || !sign) throw new Error("two headers");
  expect(causes([]).said.map(({ header }) => header)).toEqual(["X-Svc-Signature", "X-Svc-Timestamp"]);
  expect(causes([time]).causes).toEqual(["header_missing"]);
  expect(causes(standard().slice(1)).said[0]?.header).toBe("webhook-id");
  expect(causes([["x-svc-timestamp", `${at}000`], sign]).said[0]?.said).toContain("milliseconds");
  for (const value of ["", sign[1].slice(7), sign[1].toUpperCase(), `"${sign[1]}"`])
    expect(causes([time, ["x-svc-signature", value]]).causes).toEqual(["header_malformed"]);
});

test("a signature over another header's time is named", () => {
  const headers = [...ours(), ...standard()].map(([name, value]): [string, string] =>
    name === "x-svc-timestamp" ? [name, String(at + 1)] : [name, value],
  );
  expect(causes(headers).causes).toEqual(["timestamp_changed"]);
});
