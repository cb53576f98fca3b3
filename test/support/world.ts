// The appliance with what it stands between: a test DNS, one receiving server a domain, a verified sender domain
// `ok.test`, an admin key and an SMTP login.
import { freePort, startAppliance, type Appliance } from "./appliance.ts";
import { startDnsServer, type DnsServer } from "./dns-server.ts";
import { publish } from "./publish.ts";
import { connectSmtp, type SmtpClient } from "./smtp-client.ts";
import { startReceiver, type Receiver } from "./smtp-receiver.ts";

export interface World {
  svc: Appliance;
  dns: DnsServer;
  key: string;
  /** By domain. */
  receivers: Record<string, Receiver>;
  receiver(domain: string): Receiver;
  /** POST /v1/messages from `a@ok.test`, over TLS with the key. */
  send(body: Record<string, unknown>): ReturnType<Appliance["api"]>;
  /** A session over implicit TLS, greeted and logged in. */
  smtp(): Promise<SmtpClient>;
  stop(): Promise<void>;
}

export interface WorldOptions {
  /** Port of all receivers; by default one of its own. */
  port?: number;
  /** Domain → loopback address of its only MX. */
  domains: Record<string, string>;
  config?: Record<string, unknown>;
  dataDir?: string;
  /** Of the appliance's process. */
  env?: Record<string, string>;
}

export async function startWorld({
  port: wanted,
  domains,
  config = {},
  dataDir,
  env = {},
}: WorldOptions): Promise<World> {
  const port = wanted ?? (await freePort());
  const dns = await startDnsServer();
  const receivers: Record<string, Receiver> = {};
  for (const [domain, address] of Object.entries(domains)) {
    dns.set(domain, "MX", [`10 mx.${domain}`]);
    dns.set(`mx.${domain}`, "A", [address]);
    receivers[domain] = await startReceiver({ address, port });
  }
  const outbound = { port, allow_networks: ["127.0.0.0/8"], retry: ["1s"], ...asObject(config["outbound"]) };
  const svc = await startAppliance({
    env,
    config: { dns: { servers: [dns.server] }, ...config, outbound },
    ...(dataDir === undefined ? {} : { dataDir }),
  });
  const key: string = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json.key;
  await publish(svc, dns, "ok.test");
  const login = (await svc.admin("POST", "/v1/smtp_credentials", { name: "test" })).json;
  const auth = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");
  return {
    svc,
    dns,
    key,
    receivers,
    receiver(domain) {
      const found = receivers[domain];
      if (!found) throw new Error(`no receiver of ${domain}`);
      return found;
    },
    send: (body) =>
      svc.api(key, "POST", "/v1/messages", { from: "a@ok.test", subject: "Hello", text: "Hi", ...body }),
    async smtp() {
      const client = await connectSmtp({ port: svc.tlsPort, tls: true });
      await client.answer();
      await client.command("EHLO client.test");
      const welcome = await client.command(`AUTH PLAIN ${auth}`);
      if (welcome.code !== 235) throw new Error(welcome.text);
      return client;
    },
    async stop() {
      await svc.stop();
      await Promise.all([dns.stop(), ...Object.values(receivers).map((receiver) => receiver.stop())]);
    },
  };
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
