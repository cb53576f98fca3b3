// The codec between the API's snake case and the records of the modules: what a view shows and an input holds.
import { expect, test } from "vitest";
import { z } from "zod";
import { inputOf, viewOf } from "../../src/http/codec.ts";
import { timestamp } from "../../src/value-schemas.ts";

const schema = z.strictObject({
  id: z.string(),
  created_at: timestamp,
  last_used_at: timestamp.nullable().describe("When it was used last."),
  smtp_code: z.string().nullable(),
  allow_ips: z.array(z.string()),
});
const record = {
  id: "key_1",
  createdAt: 1_764_234_922_123,
  lastUsedAt: null,
  smtpCode: 250,
  allowIps: ["192.0.2.1"],
  secret: "not shown",
};

test("a view shows the fields of its schema, in their order, and times as ISO 8601", () => {
  const view = viewOf(schema, { smtp_code: ({ smtpCode }: { smtpCode: number }) => String(smtpCode) });
  expect(Object.entries(view(record))).toEqual([
    ["id", "key_1"],
    ["created_at", "2025-11-27T09:15:22.123Z"],
    ["last_used_at", null],
    ["smtp_code", "250"],
    ["allow_ips", ["192.0.2.1"]],
  ]);
});

test("a time that may be null and is not is shown as text, with a description or without", () => {
  const view = viewOf(schema.pick({ last_used_at: true }));
  expect(view({ lastUsedAt: 0 })).toEqual({ last_used_at: "1970-01-01T00:00:00.000Z" });
});

test("a transformation reads the context beside the record", () => {
  const view = viewOf(schema.pick({ id: true, smtp_code: true }), {
    smtp_code: (_: object, code: string) => code,
  });
  expect(view({ id: "a" }, "550")).toEqual({ id: "a", smtp_code: "550" });
});

test("one answer does not change another", () => {
  const view = viewOf(schema.pick({ id: true }));
  const [first, second] = [view({ id: "a" }), view({ id: "b" })];
  expect([first.id, second.id]).toEqual(["a", "b"]);
});

const body = z.strictObject({
  is_default: z.boolean().optional(),
  daily_quota: z.int().nullable().optional(),
  event: z.string().optional(),
  limit: z.string().optional(),
});
const input = inputOf(body, { event: "types", limit: null });

test("an input has the members' names in camelCase, or those that are named, and leaves out null", () => {
  expect(input({ is_default: false, daily_quota: null, event: "a", limit: "5" })).toEqual({
    isDefault: false,
    dailyQuota: null,
    types: "a",
  });
});

test("what a body leaves out is not a member of the input", () => {
  expect(Object.keys(input({ is_default: undefined, daily_quota: 1 }))).toEqual(["dailyQuota"]);
});
