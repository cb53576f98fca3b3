// `svc webhooks listen` on the built program: here and from elsewhere, over a restart of the service, until Ctrl-C.
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { eventually, program, startAppliance, type Appliance } from "../support/appliance.ts";
import { startDnsServer, type DnsServer } from "../support/dns-server.ts";
import { publish } from "../support/publish.ts";

const secret = "s".repeat(64);
let dns: DnsServer;
let appliance: Appliance;
let key = "";
beforeAll(async () => {
  dns = await startDnsServer();
  appliance = await startAppliance({ config: { dns: { servers: [dns.server] } } });
  const made = await appliance.admin("POST", "/v1/keys", { name: "all", scope: "admin", test: true });
  key = made.json.key;
  await publish(appliance, dns, "ok.test");
});
afterAll(async () => {
  await appliance?.stop();
  await dns?.stop();
});

async function receiver() {
  const bodies: string[] = [];
  const wrong: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const timestamp = String(request.headers["x-svc-timestamp"]);
      const digest = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
      if (request.headers["x-svc-signature"] !== `sha256=${digest}`) wrong.push(body);
      bodies.push(body);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks`;
  return { url, bodies, wrong };
}

function listening(url: string, more: string[] = [], env: Record<string, string> = {}) {
  const args = ["webhooks", "listen", "--forward-to", url, ...more];
  const child = spawn(program, args, {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SVC_SOCKET: appliance.socket, SVC_WEBHOOK_SECRET: secret, ...env },
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  return {
    ready: () => eventually(async () => printed.includes("until Ctrl-C")),
    printed: () => printed,
    async interrupt(): Promise<number | null> {
      const gone = once(child, "close");
      child.kill("SIGINT");
      const [code] = (await gone) as [number | null];
      return code;
    },
  };
}

async function happen(): Promise<void> {
  const sent = await appliance.api(key, "POST", "/v1/messages", {
    from: "hello@ok.test",
    to: "bounce@simulator.svc",
    subject: "Grüße \u202e",
    text: "x",
    metadata: { "2": "b", "10": "a" },
  });
  expect(sent.status, sent.text).toBe(202);
}

test("events are forwarded here and from elsewhere alike, over a restart, until Ctrl-C", async () => {
  const [here, there] = [await receiver(), await receiver()];
  const keyFile = join(appliance.dir, "api.key");
  writeFileSync(keyFile, key, { mode: 0o600 });
  const remote = ["--url", `https://127.0.0.1:${appliance.httpPort}`, "--api-key-file", keyFile];
  const local = listening(here.url);
  const far = listening(there.url, remote, {
    NODE_EXTRA_CA_CERTS: join(appliance.dataDir, "tls", "cert.pem"),
  });
  await Promise.all([local.ready(), far.ready()]);
  await happen();
  await eventually(async () => here.bodies.length === 1 && there.bodies.length === 1);
  await appliance.kill();
  await appliance.restart();
  await happen();
  await eventually(async () => here.bodies.length === 2 && there.bodies.length === 2);
  expect(here.bodies.map((body) => JSON.parse(body).event)).toEqual(["message.bounced", "message.bounced"]);
  expect(there.bodies).toEqual(here.bodies);
  expect([...here.wrong, ...there.wrong]).toEqual([]);
  expect(await local.interrupt()).toBe(130);
  expect(await far.interrupt()).toBe(130);
  expect(local.printed()).toContain("trying again in 1 s");
  expect(local.printed()).not.toContain(secret);
  const [, after = ""] = /--after (evt_\w+)\n$/.exec(local.printed()) ?? [];
  expect(after).toBe(JSON.parse(here.bodies[1] ?? "{}").event_id);
});
