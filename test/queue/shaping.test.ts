import { expect, test } from "vitest";
import type { SetShapingRule } from "../../src/model/shaping.ts";
import { createShaping } from "../../src/queue/shaping.ts";

const rule = (name: string, over: Partial<SetShapingRule>): SetShapingRule => ({
  name,
  connections: null,
  perSecond: null,
  messagesPerConnection: null,
  tls: null,
  updatedAt: 0,
  ...over,
});

test("a shaping file overrides rows of the table and leaves the others", () => {
  const shaping = createShaping({
    groups: { google: { connections: 2 }, "big.example": { per_second: 1000 } },
  });
  expect(shaping.limits("google")).toMatchObject({ connections: 2, perSecond: 50 });
  expect(shaping.limits("big.example")).toMatchObject({ connections: 10, perSecond: 1000 });
  expect(shaping.limits("other.example")).toMatchObject({ connections: 10, perSecond: 100 });
  expect(shaping.limits("smart-host").perSecond).toBe(Number.POSITIVE_INFINITY);
});

test("a shaping file of another form is refused", () => {
  expect(() => createShaping({ groups: { google: { connections: 0 } } })).toThrow();
  expect(() => createShaping({ groups: { google: { conections: 3 } } })).toThrow();
  expect(() => createShaping({ groups: { gogle: { connections: 3 } } })).toThrow();
});

test("what is set stands over the file, and the file over the table, field by field", () => {
  const shaping = createShaping({ groups: { google: { connections: 2, per_second: 5 } } }, [
    rule("google", { connections: 1 }),
  ]);
  expect(shaping.limits("google")).toEqual({ connections: 1, perSecond: 5, messagesPerConnection: 100 });
  expect(shaping.explain("google")).toMatchObject({
    connections: { value: 1, rule: "google", origin: "set" },
    perSecond: { value: 5, rule: "google", origin: "shaping_file" },
    messagesPerConnection: { value: 100, rule: "google", origin: "built_in" },
    tls: { value: null },
  });
  shaping.replace([]);
  expect(shaping.limits("google").connections).toBe(2);
});

test("a domain with limits of its own has its MX group's for the rest; one without is a part of its MX group", () => {
  const shaping = createShaping({
    groups: { "acme.example": { per_second: 1 }, "tls.example": { tls: "require" } },
  });
  const group = shaping.groupFor("acme.example", "google");
  expect(group).not.toBe("google");
  expect(shaping.limits(group)).toEqual({ connections: 10, perSecond: 1, messagesPerConnection: 100 });
  expect(shaping.groupFor("other.example", "google")).toBe("google");
  expect(shaping.groupFor("tls.example", "google")).toBe("google");
  expect(shaping.groupFor("acme.example", "acme.example")).toBe("acme.example");
  expect(shaping.groupFor("acme.example", "smart-host"), "it takes all domains' mail").toBe("smart-host");
  expect(shaping.explain("acme.example", "yahoo")).toMatchObject({
    perSecond: { value: 1, rule: "acme.example" },
    connections: { value: 5, rule: "yahoo", origin: "built_in" },
  });
});

test("a domain whose MX are of several groups has a group of its own already, and its rule is the rule of that", () => {
  const shaping = createShaping({ groups: { "two.example": { per_second: 1 } } });
  expect(shaping.groupFor("two.example", "two.example/yahoo")).toBe("two.example/yahoo");
  expect(shaping.groupFor("other.example", "other.example/yahoo")).toBe("other.example/yahoo");
  expect(shaping.limits("two.example/yahoo")).toMatchObject({ connections: 5, perSecond: 1 });
  expect(shaping.limits("other.example/yahoo")).toMatchObject({ connections: 5, perSecond: 20 });
  expect(shaping.explain("two.example", "two.example/yahoo")).toMatchObject({
    connections: { rule: "yahoo" },
    perSecond: { rule: "two.example" },
  });
});

test("default is for every group that says nothing of a field, also where it is set later", () => {
  const shaping = createShaping({ groups: { "big.example": { per_second: 1000 } } });
  shaping.replace([rule("default", { connections: 3 })]);
  expect(shaping.limits("big.example")).toMatchObject({ connections: 3, perSecond: 1000 });
  expect(shaping.limits("other.example").connections).toBe(3);
  expect(shaping.limits("google").connections, "the table says it").toBe(10);
  for (const group of ["local", "sandbox"]) expect(shaping.limits(group).connections).toBe(8);
});

test("TLS is what the recipient domain's rule asks for, else the MX group's, else nothing", () => {
  const shaping = createShaping({
    groups: { "a.example": { tls: "verify" }, google: { tls: "require" }, "b.example": { per_second: 1 } },
  });
  expect(shaping.tlsFor("a.example", "google")).toBe("verify");
  expect(shaping.tlsFor("b.example", shaping.groupFor("b.example", "google"))).toBe("require");
  expect(shaping.tlsFor("c.example", "c.example")).toBeUndefined();
  expect(shaping.tlsFor("a.example")).toBe("verify");
});

test("a host that is called like a member of every object has no limits of its own", () => {
  const shaping = createShaping(null);
  for (const group of ["constructor", "__proto__", "toString"])
    expect(shaping.limits(group)).toMatchObject({ connections: 10, perSecond: 100 });
});
