// `svc config show`, `get`, `schema` and `systemd-unit`.
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch, svc, type World } from "./world.ts";

const yaml = `hostname: mail.acme.example
outbound:
  max_age: 24h
  retry: [1m, 5m]
guard: {hard_bounce: 5%, complaint: 0.1%}
`;

function withFile(text = yaml): {
  file: string;
  config: (args: string[], world?: World) => ReturnType<typeof svc>;
} {
  const file = join(scratch(), "svc.yaml");
  writeFileSync(file, text);
  return {
    file,
    config: (args, world = {}) => svc([...args, "--config", file], { home: "/home/ann", ...world }),
  };
}

test("show prints every option with its value, and with --origin where it comes from", async () => {
  const { file, config } = withFile();
  const world = { env: { SVC_LOG_LEVEL: "warn" } };
  const rows = (await config(["config", "show", "--origin"], world)).out.trimEnd().split("\n");
  expect(rows[0]).toBe("OPTION\tVALUE\tFROM");
  expect(rows).toContain(`outbound.max_age\t24h\t${file}:3`);
  expect(rows).toContain(`outbound.retry\t1m,5m\t${file}:4`);
  expect(rows).toContain(`guard\t{"hard_bounce":"5%","complaint":"0.1%"}\t${file}:5`);
  expect(rows).toContain("log.level\twarn\tenvironment");
  expect(rows).toContain("outbound.port\t25\tdefault");
  expect(rows).toContain("data_dir\t/home/ann/.local/share/svc\tdefault");
  const changed = (await config(["config", "show", "--changed"], world)).out.trimEnd().split("\n");
  expect(changed.map((row) => row.split("\t")[0])).toEqual([
    "OPTION",
    "hostname",
    "outbound.retry",
    "outbound.max_age",
    "guard",
    "log.level",
  ]);
});

test("--json has value, source and line of each", async () => {
  const { file, config } = withFile();
  const { options } = JSON.parse((await config(["--json", "config", "show"])).out);
  expect(options).toContainEqual({ option: "outbound.max_age", value: "24h", source: file, line: 3 });
  expect(options).toContainEqual({ option: "outbound.port", value: 25, source: null, line: null });
  const got = await config(["--json", "config", "get", "outbound.retry"]);
  expect(JSON.parse(got.out)).toEqual({
    option: "outbound.retry",
    value: ["1m", "5m"],
    source: file,
    line: 4,
  });
});

test("a password in the environment is never shown", async () => {
  const { config } = withFile(
    "hostname: a.example\noutbound: {smart_host: {host: relay.example, user: ann}}\n",
  );
  const env = { SVC_OUTBOUND_SMART_HOST_PASSWORD: "hunter2" };
  for (const args of [
    ["config", "show", "--origin"],
    ["--json", "config", "show"],
    ["config", "systemd-unit"],
  ]) {
    const ran = await config(args, { env });
    expect([ran.code, ran.out.includes("hunter2"), ran.err.includes("hunter2")]).toEqual([0, false, false]);
  }
  expect((await config(["config", "show"], { env })).err).toContain(
    "SVC_OUTBOUND_SMART_HOST_PASSWORD is set",
  );
});

test("get prints the value alone, in the form that set takes", async () => {
  const { config } = withFile();
  expect((await config(["config", "get", "outbound.max_age"])).out).toBe("24h\n");
  expect((await config(["config", "get", "outbound.retry"])).out).toBe("1m,5m\n");
  const guard = (await config(["config", "get", "guard"])).out.trim();
  expect((await config(["config", "set", "guard", guard])).code).toBe(0);
  expect((await config(["config", "get", "guard"])).out.trim()).toBe(guard);
  expect(await config(["config", "get", "tls.cert"])).toMatchObject({
    code: 0,
    out: "",
    err: "tls.cert has no value.\n",
  });
});

test.each([
  ["outbound.max_aeg", "Did you mean outbound.max_age?"],
  ["outbound", "It is a section: outbound.port"],
  ["guard.complaint", "guard is, and is set as a whole"],
])("get %s is a usage error that helps", async (path, words) => {
  const ran = await withFile().config(["config", "get", path]);
  expect([ran.code, ran.out]).toEqual([2, ""]);
  expect(ran.err).toContain(words);
});

test("a configuration with faults is exit 78, and every fault is named", async () => {
  const { config } = withFile("outbound: {max_age: long, colour: red}\n");
  const ran = await config(["config", "show"]);
  expect([ran.code, ran.out]).toEqual([78, ""]);
  expect(ran.err).toContain("outbound.max_age");
  expect(ran.err).toContain("outbound.colour");
});

test("schema prints JSON, also where there is no configuration", async () => {
  const ran = await svc(["config", "schema"]);
  expect(ran.code).toBe(0);
  expect(JSON.parse(ran.out)).toMatchObject({ title: "svc.yaml", type: "object" });
});

const values = (text: string, key: string): string[] =>
  text.split("\n").flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));

test("root's unit is the machine's service: user svc, its directories, and the data directory that svc.yaml names", async () => {
  const { file, config } = withFile(`${yaml}data_dir: /srv/mail data/50%\n`);
  const { out } = await config(["config", "systemd-unit"], {
    uid: 0,
    env: { SVC_CALLED_AS: "/usr/bin/svc" },
  });
  expect(values(out, "User")).toEqual(["svc"]);
  expect(values(out, "Group")).toEqual(["svc"]);
  expect(values(out, "StateDirectory")).toEqual(["svc"]);
  expect(values(out, "ExecStart")).toEqual([`/usr/bin/svc serve --config ${file}`]);
  expect(values(out, "ReadWritePaths")).toEqual(['"/srv/mail data/50%%" -/var/backups/svc']);
  expect(values(out, "ProtectHome")).toEqual(["yes"]);
});

test("a plain user's unit runs as that user, with the home readable and the environment that was given", async () => {
  const bin = scratch();
  writeFileSync(join(bin, "svc"), "#!/bin/sh\n");
  chmodSync(join(bin, "svc"), 0o755);
  const { out } = await svc(["config", "systemd-unit"], {
    home: "/home/ann",
    env: { SVC_HOSTNAME: "mail.acme.example", SVC_SOCKET: "/srv/run/a.sock", PATH: `/nowhere:${bin}` },
  });
  expect(values(out, "User")).toEqual(["ann"]);
  for (const key of ["Group", "StateDirectory", "RuntimeDirectory", "RuntimeDirectoryPreserve"])
    expect(values(out, key)).toEqual([]);
  expect(values(out, "ExecStart")).toEqual([`${join(bin, "svc")} serve`]);
  expect(values(out, "Environment")).toEqual([
    "SVC_HOSTNAME=mail.acme.example",
    "SVC_SOCKET=/srv/run/a.sock",
  ]);
  expect(values(out, "ReadWritePaths")).toEqual(["/home/ann/.local/share/svc -/srv/run"]);
  expect(values(out, "ProtectHome")).toEqual(["read-only"]);
  expect(values(out, "NoNewPrivileges")).toEqual(["yes"]);
});

test("where the key of an external ACME account is below a home, root's unit can read it", async () => {
  const key = join(scratch(), "mac");
  writeFileSync(key, "a2V5\n");
  const text = `${yaml}tls: {acme: {eab_key_id: kid-1, eab_mac_key_file: /home/..${key}}}\n`;
  const { out } = await withFile(text).config(["config", "systemd-unit"], {
    uid: 0,
    env: { SVC_CALLED_AS: "/usr/bin/svc" },
  });
  expect(values(out, "ProtectHome")).toEqual(["read-only"]);
});

const analyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!analyze && process.env["CI"]) throw new Error("systemd-analyze is missing: run .ci/peers.sh as root");
if (!analyze) console.warn("SKIPPED: systemd-analyze is not installed: run .ci/peers.sh as root");

test.runIf(analyze)(
  "systemd takes both units, and a plain user's stays as closed as the package's",
  async () => {
    const folder = scratch();
    const bin = join(folder, "a dir", "svc");
    mkdirSync(join(folder, "a dir"));
    writeFileSync(bin, "#!/bin/sh\n");
    chmodSync(bin, 0o755);
    const env = { SVC_HOSTNAME: "mail.acme.example", SVC_CALLED_AS: bin, USER: "root" };
    for (const uid of [0, 1000]) {
      const { out } = await svc(["config", "systemd-unit"], { home: "/home/ann", uid, env });
      const file = join(folder, "svc-mail.service");
      writeFileSync(file, out.replace("User=svc\nGroup=svc", "User=root")); // a user that there is here
      const verified = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
      expect([verified.status, verified.stderr]).toEqual([0, ""]);
      const judged = spawnSync("systemd-analyze", ["security", "--offline=true", "--no-pager", file], {
        encoding: "utf8",
      });
      expect(Number(/Overall exposure level for .*: (\d+\.\d)/.exec(judged.stdout)?.[1])).toBeLessThanOrEqual(
        3,
      );
    }
  },
);
