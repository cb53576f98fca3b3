import {
  chmodSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch, svc } from "./world.ts";

const before = `# The mail server.
hostname: mail.acme.example # as in the DNS

outbound:
  # Two days are too long for us.
  max_age: 48h
limits:
`;

function fileWith(text: string): { file: string; config: (...args: string[]) => ReturnType<typeof svc> } {
  const file = join(scratch(), "svc.yaml");
  writeFileSync(file, text);
  return { file, config: (...args) => svc(["config", ...args, "--config", file], { home: scratch() }) };
}

test("an option is set and unset in svc.yaml; comments, order, mode and all else stay", async () => {
  const { file, config } = fileWith(before);
  chmodSync(file, 0o640);
  const ran = await config("set", "outbound.max_age", "24h");
  expect([ran.code, ran.out]).toEqual([0, `outbound.max_age is set in ${file}\n`]);
  expect(readFileSync(file, "utf8")).toBe(before.replace("48h", "24h"));
  expect(statSync(file).mode & 0o777).toBe(0o640);
  expect((await config("set", "limits.max_queue", "1000")).code).toBe(0);
  expect((await config("set", "outbound.retry", "1m,5m")).code).toBe(0);
  expect((await config("set", "guard", "{hard_bounce: 5%, complaint: 0.1%}")).code).toBe(0);
  const text = readFileSync(file, "utf8");
  expect(text).toContain("# as in the DNS");
  expect(text).toContain("# Two days are too long for us.");
  expect((await config("check")).out).toBe(`The configuration is valid (${file}).\n`);
  expect((await config("unset", "outbound.max_age")).code).toBe(0);
  expect(readFileSync(file, "utf8")).not.toContain("max_age");
  expect(readdirSync(join(file, ".."))).toEqual(["svc.yaml"]);
});

test("a file that is not there is made", async () => {
  const file = join(scratch(), "svc", "svc.yaml");
  expect((await svc(["config", "set", "hostname", "mail.acme.example", "--config", file])).code).toBe(0);
  expect(readFileSync(file, "utf8")).toBe("hostname: mail.acme.example\n");
});

test("what would be a fault is not written, and a misspelt option is named", async () => {
  const { file, config } = fileWith(before);
  const wrong = await config("set", "outbound.max_age", "soon");
  expect(wrong.code).toBe(78);
  expect(wrong.err).toContain("is not changed");
  expect(wrong.err).toContain("outbound.max_age");
  const misspelt = await config("set", "outbound.max_aeg", "1h");
  expect(misspelt.code).toBe(2);
  expect(misspelt.err).toContain("Did you mean outbound.max_age?");
  expect(readFileSync(file, "utf8")).toBe(before);
  const broken = fileWith("hostname: [\n");
  expect((await broken.config("set", "hostname", "mail.acme.example")).code).toBe(78);
  expect(readFileSync(broken.file, "utf8")).toBe("hostname: [\n");
  const flat = fileWith("hostname: mail.acme.example\noutbound: 3\n");
  expect((await flat.config("set", "outbound.max_age", "1h")).err).toContain("outbound is not a section");
});

test("a link stays a link, and the file that it leads to is changed", async () => {
  const { file } = fileWith(before);
  const link = join(scratch(), "link.yaml");
  symlinkSync(file, link);
  expect((await svc(["config", "set", "outbound.max_age", "24h", "--config", link])).code).toBe(0);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(readFileSync(file, "utf8")).toBe(before.replace("48h", "24h"));
});

test("an option that the environment gives as well is set, and said to have no effect", async () => {
  const { file } = fileWith(before);
  const ran = await svc(["config", "set", "outbound.max_age", "24h", "--config", file], {
    env: { SVC_OUTBOUND_MAX_AGE: "12h" },
  });
  expect(ran.code).toBe(0);
  expect(ran.err).toContain("It has no effect: outbound.max_age is given by environment");
  expect(ran.err).not.toContain("started again");
  expect(readFileSync(file, "utf8")).toContain("24h");
});

test("a part of an option that is set as a whole is not taken for one", async () => {
  const { config } = fileWith(before);
  const ran = await config("set", "limits.rates.messages-write", "5");
  expect([ran.code, ran.err]).toEqual([2, expect.stringContaining("limits.rates is, and is set as a whole")]);
});

test("an option that is given twice is refused; one that is like no other leads to the list", async () => {
  const twice = await svc(["config", "set", "backup.keep", "3", "backup.keep", "4"]);
  expect([twice.code, twice.err]).toEqual([2, expect.stringContaining("backup.keep: found it twice")]);
  const unknown = await svc(["config", "set", "zzz", "1"]);
  expect([unknown.code, unknown.err]).toEqual([2, expect.stringContaining("svc config show")]);
});

test("a file that cannot be read is said to be, and is not changed", async () => {
  const ran = await svc(["config", "set", "backup.keep", "3", "--config", "/proc/self"]);
  expect([ran.code, ran.err]).toEqual([78, expect.stringContaining("/proc/self cannot be changed: EISDIR")]);
});

test("several options are set at once where one alone would be a fault: all of them or none", async () => {
  const { file, config } = fileWith(before);
  const password = join(scratch(), "password");
  writeFileSync(password, "s3cret\n");
  const host = ["outbound.smart_host.host", "relay.example"];
  const login = ["outbound.smart_host.user", "acme", "outbound.smart_host.password_file", password];
  const alone = await config("set", ...host, ...login.slice(0, 2));
  expect([alone.code, alone.err]).toEqual([78, expect.stringContaining("outbound.smart_host.password_file")]);
  const odd = await config("set", ...host, "outbound.smart_host.user");
  expect([odd.code, odd.err]).toEqual([
    2,
    expect.stringContaining("outbound.smart_host.user: found no value"),
  ]);
  const misspelt = await config("set", ...host, "outbound.smart_host.usr", "acme");
  expect([misspelt.code, misspelt.err]).toEqual([2, expect.stringContaining("outbound.smart_host.user")]);
  expect(readFileSync(file, "utf8")).toBe(before);
  const ran = await config("set", ...host, ...login);
  expect([ran.code, ran.err]).toEqual([0, "It takes effect when the service is started again.\n"]);
  expect(ran.out.split("\n")).toHaveLength(4);
  expect((await config("check")).code).toBe(0);
  expect(readFileSync(file, "utf8")).toContain(`password_file: ${password}`);
});
