import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { DaemonModule, RunningDaemon } from "../../src/cli/daemon-contract.ts";
import type { Config } from "../../src/config.ts";
import { scratch, svc } from "./world.ts";

interface Fake {
  module: DaemonModule;
  configs: Config[];
  calls: string[];
  /** Resolves when the service runs. */
  up: Promise<void>;
}

function fake(over: { start?: () => void; stop?: () => Promise<void> } = {}): Fake {
  const configs: Config[] = [];
  const calls: string[] = [];
  let isUp = (): void => undefined;
  const up = new Promise<void>((resolve) => (isUp = resolve));
  const module: DaemonModule = {
    async serve({ config }) {
      over.start?.();
      configs.push(config);
      let end = (): void => undefined;
      const finished = new Promise<void>((resolve) => (end = resolve));
      const daemon: RunningDaemon = {
        addresses: () => [
          { name: "http", address: "127.0.0.1:8443" },
          { name: "smtp", address: "127.0.0.1:8587" },
          { name: "smtps", address: "127.0.0.1:8465" },
        ],
        devCredentials: async () => ({
          key: "svc_test_KEY",
          smtpUsername: "smtp_1_test",
          smtpPassword: "PASS",
        }),
        reload: async () => void calls.push("reload"),
        async stop() {
          calls.push("stop");
          await over.stop?.();
          end();
        },
        finished,
      };
      setImmediate(isUp);
      return daemon;
    },
    async initialise({ config, domain, checkNetwork }) {
      over.start?.();
      configs.push(config);
      calls.push(`initialise ${domain}`);
      const smtp = { username: "smtp_1", password: "PASS" };
      const remarks = checkNetwork ? ["the host has no address"] : [];
      return { adminKey: "svc_live_ADMIN", smtp, domain: null, remarks };
    },
    backupOffline: () => Promise.reject(new Error("no backup here")),
    checkOffline: () => Promise.reject(new Error("not here")),
    doctorOffline: () => Promise.reject(new Error("not here")),
    migrate: () => Promise.reject(new Error("no migration here")),
    restore: () => Promise.reject(new Error("no restore here")),
  };
  return { module, configs, calls, up };
}

function configFile(text: string): string {
  const file = join(scratch(), "svc.yaml");
  writeFileSync(file, text);
  return file;
}

test("serve --check names every fault with its line and ends with exit 78, without loading the daemon", async () => {
  const file = configFile("hostname: mail.acme.example\noutbound:\n  max_age: long\n  colour: red\n");
  const ran = await svc(["serve", "--check", "--config", file]);
  expect(ran).toMatchObject({ code: 78, out: "" });
  expect(ran.err).toContain(`${file}:3: outbound.max_age: found "long", expected a span`);
  expect(ran.err).toContain(`${file}:4: outbound.colour: found a key that svc does not know`);
  expect(ran.err).toContain("svc serve --check");
});

test("serve --check says that a right configuration is right", async () => {
  const file = configFile("hostname: mail.acme.example\n");
  expect(await svc(["serve", "--check", "--config", file])).toMatchObject({
    code: 0,
    out: `The configuration is valid (${file}).\n`,
  });
});

test("flags of serve outdo the file, relative paths are of the working directory", async () => {
  const file = configFile("hostname: mail.acme.example\ndata_dir: /else\n");
  const daemon = fake();
  let raise = (_name: string): void => undefined;
  const running = svc(
    `serve --config ${file} --data-dir data --socket admin.sock --log-level error --log-format pretty`.split(
      " ",
    ),
    {
      daemon: daemon.module,
      cwd: "/srv",
      signals: (by) => (raise = by),
    },
  );
  await daemon.up;
  raise("SIGTERM");
  expect((await running).code).toBe(0);
  expect(daemon.configs[0]).toMatchObject({
    dataDir: "/srv/data",
    socket: "/srv/admin.sock",
    log: { level: "error", format: "pretty" },
    dev: false,
  });
});

test("SIGHUP reads certificates again, the first SIGTERM stops in order, the second ends at once", async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  const daemon = fake({ stop: () => held });
  const exits: number[] = [];
  let raise = (_name: string): void => undefined;
  const running = svc(["serve", "--config", configFile("hostname: a.example")], {
    daemon: daemon.module,
    signals: (by) => (raise = by),
    exit: (code) => void exits.push(code),
  });
  await daemon.up;
  raise("SIGHUP");
  raise("SIGTERM");
  await new Promise((resolve) => void setImmediate(resolve));
  expect([daemon.calls, exits]).toEqual([["reload", "stop"], []]);
  raise("SIGINT");
  expect(exits).toEqual([1]);
  release();
  expect((await running).code).toBe(0);
});

test("ends once everything has stopped, whatever a receiver that hangs still holds open", async () => {
  const daemon = fake({ stop: async () => undefined });
  const exits: number[] = [];
  let raise = (_name: string): void => undefined;
  const running = svc(["serve", "--config", configFile("hostname: a.example")], {
    daemon: daemon.module,
    signals: (by) => (raise = by),
    exit: (code) => void exits.push(code),
  });
  await daemon.up;
  raise("SIGTERM");
  await running;
  expect(exits).toEqual([0]);
});

test.each([
  [
    Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", address: "127.0.0.1", port: 8443 }),
    1,
    "127.0.0.1:8443 is in use by another program",
  ],
  [
    Object.assign(new Error("listen EACCES"), { code: "EACCES", address: "::", port: 25 }),
    4,
    "CAP_NET_BIND_SERVICE",
  ],
  [
    new Error("/var/lib/svc is in use by process 12"),
    1,
    "it does not start: /var/lib/svc is in use by process 12",
  ],
])("serve that cannot start says why in words (%o)", async (error, code, said) => {
  const { module } = fake({
    start: () => {
      throw error;
    },
  });
  const ran = await svc(["serve", "--config", configFile("hostname: a.example")], { daemon: module });
  expect(ran.code).toBe(code);
  expect(ran.err).toContain(said);
  expect(ran.err).not.toContain("    at ");
});

async function dev(args: string[], world: { home: string; env?: Record<string, string> }) {
  const daemon = fake();
  let raise = (_name: string): void => undefined;
  const running = svc(["serve", "--dev", ...args], {
    ...world,
    daemon: daemon.module,
    signals: (by) => (raise = by),
  });
  await daemon.up;
  const [config] = daemon.configs;
  const present = config !== undefined && existsSync(config.dataDir);
  raise("SIGINT");
  return { ran: await running, config, present };
}

test("serve --dev prints key, login and lines to paste, where the other commands find it by themselves", async () => {
  const home = scratch();
  const { ran, config, present } = await dev([], { home });
  expect(ran).toMatchObject({ code: 0, err: "" });
  expect(ran.out).toContain("-H 'Authorization: Bearer svc_test_KEY'");
  expect(ran.out).toContain("https://127.0.0.1:8443/v1/messages");
  expect(ran.out).toContain("swaks --server 127.0.0.1:8587 --tls");
  expect(ran.out).toContain("  svc inbox list\n");
  expect(ran.out).not.toContain("SVC_SOCKET");
  expect(config).toMatchObject({ dev: true, socket: join(home, ".local/share/svc/admin.sock") });
  expect([present, existsSync(config?.dataDir ?? "")]).toEqual([true, false]);
});

test("serve --dev with a data directory keeps it, and says how to reach its socket", async () => {
  const dataDir = scratch();
  const { ran, config } = await dev(["--data-dir", dataDir], { home: scratch() });
  expect(ran.out).toContain(`  export SVC_SOCKET=${dataDir}/admin.sock\n`);
  expect(config?.dataDir).toBe(dataDir);
  expect(existsSync(dataDir)).toBe(true);
});

test("serve --dev leaves the usual socket to a daemon that has it", async () => {
  const home = scratch();
  mkdirSync(join(home, ".local/share/svc"), { recursive: true });
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(join(home, ".local/share/svc/admin.sock"), resolve));
  onTestFinished(() => void server.close());
  const { ran, config } = await dev([], { home });
  expect(config?.socket.startsWith(config.dataDir)).toBe(true);
  expect(ran.out).toContain(`export SVC_SOCKET=${config?.socket}`);
});

test("serve --dev --json is one object for programs", async () => {
  const { ran } = await dev(["--json"], { home: scratch() });
  expect(JSON.parse(ran.out)).toMatchObject({
    url: "https://127.0.0.1:8443",
    key: "svc_test_KEY",
    smtp: {
      starttls: ["127.0.0.1:8587"],
      implicit_tls: ["127.0.0.1:8465"],
      username: "smtp_1_test",
      password: "PASS",
    },
  });
});

test("init writes svc.yaml, shows key and password once, and refuses to do it twice", async () => {
  const home = scratch();
  const file = join(home, "svc.yaml");
  const daemon = fake();
  const args = [
    "init",
    "--hostname",
    "mail.acme.example",
    "--domain",
    "acme.example",
    "--admin-email",
    "ops@acme.example",
    "--config",
    file,
    "--data-dir",
    join(home, "data"),
  ];
  const ran = await svc(args, { home, daemon: daemon.module });
  expect(ran.code).toBe(0);
  expect(ran.out).toContain("svc_live_ADMIN");
  expect(daemon.calls).toEqual(["initialise acme.example"]);
  expect(daemon.configs[0]).toMatchObject({
    hostname: "mail.acme.example",
    operations: { email: "ops@acme.example" },
    dataDir: join(home, "data"),
  });
  expect((await svc(["serve", "--check", "--config", file], { home })).code).toBe(0);
  const again = await svc(args, { home, daemon: daemon.module });
  expect([again.code, daemon.calls.length]).toEqual([5, 1]);
  expect((await svc([...args, "--force", "--json"], { home, daemon: daemon.module })).code).toBe(0);
  expect(existsSync(`${file}.old`)).toBe(true);
});

test("init adds to a svc.yaml that has comments only, and says what it saw of the network unless it is not to look", async () => {
  const home = scratch();
  const file = join(home, "svc.yaml");
  writeFileSync(file, "# Of the package.\n");
  const args = [
    "init",
    "--hostname",
    "mail.acme.example",
    "--config",
    file,
    "--data-dir",
    join(home, "data"),
  ];
  const ran = await svc([...args, "--skip-network"], { home, daemon: fake().module });
  expect([ran.code, ran.err.includes("no address")]).toEqual([0, false]);
  expect(readFileSync(file, "utf8")).toMatch(/^# Of the package\.\nhostname: "mail\.acme\.example"\n/);
  expect(existsSync(`${file}.old`)).toBe(false);
  expect((await svc(args, { home, daemon: fake().module })).code).toBe(5);
  const looked = await svc([...args, "--force"], { home, daemon: fake().module });
  expect([looked.code, looked.err.includes("no address")]).toEqual([0, true]);
});

test("init writes tls.mode: acme where it is asked for, and refuses what needs more than a mode", async () => {
  const home = scratch();
  const file = join(home, "svc.yaml");
  const daemon = fake();
  const args = [
    "init",
    "--hostname",
    "mail.acme.example",
    "--config",
    file,
    "--data-dir",
    join(home, "data"),
  ];
  expect((await svc([...args, "--tls", "files"], { home, daemon: daemon.module })).code).toBe(2);
  const ran = await svc([...args, "--tls", "acme"], { home, daemon: daemon.module });
  expect([ran.code, ran.err]).toEqual([0, expect.stringContaining("port 80")]);
  expect(daemon.configs[0]?.tls).toMatchObject({ mode: "acme", acme: { email: null } });
  expect(readFileSync(file, "utf8")).toContain("tls:\n  mode: acme\n");
});

test("init that fails leaves no configuration behind, and puts the old one back", async () => {
  const home = scratch();
  const file = join(home, "svc.yaml");
  const { module } = fake({
    start: () => {
      throw new Error("the disk is full");
    },
  });
  const args = [
    "init",
    "--hostname",
    "mail.acme.example",
    "--config",
    file,
    "--data-dir",
    join(home, "data"),
  ];
  const ran = await svc(args, { home, daemon: module });
  expect(ran).toMatchObject({ code: 1, out: "" });
  expect(ran.err).toContain("nothing was set up: the disk is full");
  expect(existsSync(file)).toBe(false);
  writeFileSync(file, "hostname: old.example\n");
  await svc([...args, "--force"], { home, daemon: module });
  expect(readFileSync(file, "utf8")).toBe("hostname: old.example\n");
});

test("init refuses a host name that is none, before anything is written", async () => {
  const home = scratch();
  const file = join(home, "svc.yaml");
  const ran = await svc(
    ["init", "--hostname", "x.example\nMAIL FROM:<a>", "--config", file, "--data-dir", home],
    { home },
  );
  expect(ran.code).toBe(78);
  expect(existsSync(file)).toBe(false);
});
