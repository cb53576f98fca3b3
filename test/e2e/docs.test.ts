// Every shell block of README.md and docs/ that can be run is run against the built program: the README's against
// `svc serve --dev`, a page's against a server of its own in the world of the examples (support/documented-world.ts).
// Nothing leaves the machine. A block that cannot be run here says so and why, in its fence, and is listed below.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { eventually, freePorts, program, runCli } from "../support/appliance.ts";
import {
  ownServer,
  readerIn,
  startDocumentedWorld,
  type DocumentedWorld,
} from "../support/documented-world.ts";
import { missingTools } from "../support/examples.ts";
import { blocksOf, docs, readme, type Block, type Page } from "../support/pages.ts";
import { commandsOf, createWalk, notRunReason } from "../support/shell-blocks.ts";
import { removeFolder } from "../support/folders.ts";

const root = resolve(import.meta.dirname, "../..");
const missing = missingTools(["curl", "openssl", "xargs"]);
if (missing) console.warn(`SKIPPED: the shell blocks of the documentation: ${missing}`);

/** The README's two commands: they install the packages of a clone, and one of them is what runs this test. */
const ofAClone = ["npm ci && npm run dev\n", "npm ci && npm test\n"];
const shellBlocks = (page: Page): Block[] => blocksOf(page).filter(({ language }) => language === "sh");
const isRun = (block: Block): boolean => notRunReason(block) === null && !ofAClone.includes(block.code);

test("what is not run says why, and is no more than this", () => {
  const notRun = [readme, ...docs].flatMap(shellBlocks).filter((block) => !isRun(block));
  expect(notRun.map((block) => `${block.file}: ${notRunReason(block) ?? block.code.trim()}`)).toEqual([
    "README.md: npm ci && npm run dev",
    "README.md: npm ci && npm test",
    "README.md: it installs a program on this machine",
    "docs/backup.md: it needs a stopped service",
    "docs/backup.md: it needs a restored service",
    "docs/configuration.md: it changes the configuration of this machine",
    "docs/domains.md: there is no such name server",
    "docs/events.md: the files are of a request that came in",
    "docs/install.md: it installs a program on this machine",
    "docs/install.md: it installs a program on this machine",
    "docs/install.md: it needs a container engine",
    "docs/install.md: it writes into the shell's own directory",
    "docs/install.md: it needs root and systemd",
    "docs/install.md: it needs root and systemd",
    "docs/operations.md: it needs root and systemd",
  ]);
});

const scratch = mkdtempSync(join(tmpdir(), "svc-docs-"));
const stops: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const stop of stops.toReversed()) await stop();
  removeFolder(scratch);
});

interface DevScreen {
  key: string;
  smtp: { username: string; password: string };
  certificate: string;
}

test.skipIf(missing !== null)("the blocks of the README work against svc serve --dev", async () => {
  const [http, starttls, tls] = await freePorts(3);
  const env = { SVC_SOCKET: join(scratch, "dev.sock") };
  const ports = {
    SVC_HTTP_LISTEN: `127.0.0.1:${http}`,
    SVC_RELAY_STARTTLS: `127.0.0.1:${starttls}`,
    SVC_RELAY_IMPLICIT_TLS: `127.0.0.1:${tls}`,
  };
  const child = spawn(program, ["serve", "--dev", "--json", "--data-dir", join(scratch, "dev")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env, ...ports },
  });
  const gone = once(child, "exit");
  stops.push(async () => {
    child.kill("SIGTERM");
    await gone;
  });
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  await eventually(async () => printed.includes("\n"));
  const { key, smtp, certificate } = JSON.parse(printed) as DevScreen;
  const walk = createWalk({
    ...readerIn(join(scratch, "readme"), env),
    cwd: root,
    standsFor: [
      ["/tmp/svc-dev-…/tls/cert.pem", certificate],
      ["127.0.0.1:8443", `127.0.0.1:${http}`],
      ["127.0.0.1:8587", `127.0.0.1:${starttls}`],
      ["svc_test_…", key],
      ["smtp_…_test:…", `${smtp.username}:${smtp.password}`],
    ],
  });
  for (const block of shellBlocks(readme).filter(isRun))
    for (const command of commandsOf(block)) await walk.run(command);
  const inbox = JSON.parse((await runCli(["inbox", "list", "--json"], env)).stdout) as {
    data: { subject: string }[];
  };
  expect(inbox.data.map(({ subject }) => subject)).toEqual(["Hello", "Hello"]);
});

/** The page about domains begins before there is one. */
const withoutDomain = ["docs/domains.md"];
/** There `svc init` writes the configuration. */
const withoutConfig = ["docs/install.md"];

/** What is to be seen once a page was gone through, beyond commands that succeed. */
const outcomes: Record<string, (world: DocumentedWorld) => Promise<void>> = {
  async "docs/sending-by-rest.md"({ receiver }) {
    await receiver.waitForMails(4); // the first message, the batch, and one of it again; test mail stays
    const subjects = receiver.mails.map(({ data }) => /^Subject: (.*)\r$/m.exec(data.toString())?.[1] ?? "");
    expect(subjects.toSorted()).toEqual(["One", "One", "Two", "Your order"]);
  },
  async "docs/sending-by-smtp.md"({ receiver }) {
    const [mail] = await receiver.waitForMails(1);
    expect(mail?.data.toString()).toMatch(/^Subject: Your order\r$/m);
    expect(mail?.data.toString()).not.toMatch(/^X-Svc-/m);
  },
};

test.skipIf(missing !== null).concurrent.each(docs.filter((page) => shellBlocks(page).some(isRun)))(
  "the blocks of $file work",
  async (page) => {
    const world = await startDocumentedWorld(join(scratch, page.file));
    stops.push(() => world.stop());
    const { svc, reader, publish } = world;
    const own = await ownServer(world);
    if (!withoutConfig.includes(page.file))
      writeFileSync(own.env["SVC_CONFIG"] ?? "", "hostname: mail.acme.example\n");
    if (!withoutDomain.includes(page.file)) {
      await svc.admin("POST", "/v1/domains", { name: "acme.example" });
      await publish();
      expect((await svc.admin("POST", "/v1/domains/acme.example/verify")).json.status).toBe("verified");
    }
    const [walk, ownWalk] = [createWalk(reader), createWalk(own)];
    const happens = ["send", "--from", "hello@acme.example", "--to", "ann@example.com", "--subject", "Hi"];
    for (const block of shellBlocks(page).filter(isRun))
      for (const command of commandsOf(block)) {
        await publish();
        const at = /^svc (?:init|serve)\b/.test(command) ? ownWalk : walk;
        if (block.note === "runs on")
          await at.runUntil(command, async () => void (await svc.cli(...happens, "--text", "Hello.")));
        else await at.run(command);
      }
    await outcomes[page.file]?.(world);
  },
);
