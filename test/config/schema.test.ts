// The JSON Schema of svc.yaml: whatever the parser takes it takes, and what it is there for, slips, it refuses.
import { Ajv } from "ajv";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { loadConfig } from "../../src/config.ts";
import { optionNotes, optionPaths, options } from "../../src/config/options.ts";
import { placesOf } from "../../src/config/places.ts";
import { configSchema } from "../../src/config/schema.ts";

// `pattern` and `anyOf` stand beside descriptions; all else that Ajv is strict about holds.
const validate = new Ajv({ strictTypes: false }).compile(configSchema());

/** What the program says of a configuration. */
const faultsOf = (config: object): string[] => {
  const found = loadConfig({
    flags: { config: "/svc.yaml" },
    env: {},
    home: "/home/ann",
    uid: 1000,
    readFile: (path) => (path === "/svc.yaml" ? JSON.stringify(config) : null),
    listDir: () => [],
  });
  return "faults" in found ? found.faults.map(({ path, found: what }) => `${path}: ${what}`) : [];
};

function nested(path: string, value: unknown): object {
  return path.split(".").reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as object;
}

test.each([
  ["root", 0],
  ["a plain user", 1000],
])("the default of every option, as %s has it, is right", (_who, uid) => {
  const around = {
    places: placesOf({ env: {}, home: "/home/ann", uid }),
    machineName: "a.example",
    dev: false,
  };
  const wrong = optionPaths.filter((path) => {
    const standard = optionNotes.get(options[path])?.standard;
    const value: unknown = typeof standard === "function" ? standard(around) : standard;
    return !validate(nested(path, value));
  });
  expect(wrong).toEqual([]);
});

test.each([
  {},
  { hostname: "mail.acme.example", limits: null, outbound: { max_age: null } },
  { outbound: { retry: "1m" }, http: { listen: "unix:/run/svc/http.sock" } },
  { outbound: { retry: ["1m", "1h30m"], smart_host: { host: "relay.example", port: 587, tls: "verify" } } },
  { retention: { content: 0 }, limits: { rates: { "messages-write": { burst: 200, per_second: 200 } } } },
  { guard: false },
  { guard: { hard_bounce: "5%" } },
  { relay: { trusted: [{ network: "10.0.0.0/8" }] } },
  { dnsbl: { zones: ["zen.spamhaus.org", { zone: "b.example", codes: "127.0.0.2" }] } },
  { backup: { at: "03:30", keep: 7 } },
])("the schema takes what the program takes: %j", (config) => {
  expect(faultsOf({ hostname: "mail.acme.example", ...config })).toEqual([]);
  expect([validate(config), validate.errors]).toEqual([true, null]);
});

test.each([
  { outbound: { max_aeg: "48h" } },
  { colour: "red" },
  { outbound: { max_age: "two days" } },
  { outbound: { port: 70_000 } },
  { outbound: { tls: "always" } },
  { outbound: { sign: "maybe" } },
  { http: { listen: [] } },
  { limits: { min_free_space: "5" } },
  { limits: { rates: { everything: { burst: 1, per_second: 1 } } } },
  { guard: { hard_bounces: "5%" } },
  { backup: { at: "3.30" } },
])("what the program refuses the schema refuses too: %j", (config) => {
  expect(faultsOf({ hostname: "mail.acme.example", ...config })).not.toEqual([]);
  expect(validate(config)).toBe(false);
});

test("every option is described, and the configuration of the Debian package is right", () => {
  const text = JSON.stringify(configSchema());
  for (const path of optionPaths)
    expect(text).toContain(JSON.stringify(optionNotes.get(options[path])?.about));
  const file = join(import.meta.dirname, "../../packaging/debian/svc.yaml");
  expect(validate(parse(readFileSync(file, "utf8")) ?? {})).toBe(true);
});
