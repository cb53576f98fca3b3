// The built program as a sender: a verified domain ok.test, an admin's key, and one receiver that the DNS leads its mail to.
import { freePort, startAppliance, type Appliance } from "./appliance.ts";
import { startDnsServer, type DnsServer } from "./dns-server.ts";
import { publish } from "./publish.ts";
import { startReceiver, type Receiver } from "./smtp-receiver.ts";

export interface Sending {
  dns: DnsServer;
  receiver: Receiver;
  svc: Appliance;
  key: string;
  stop(): Promise<void>;
}

type Records = NonNullable<Parameters<typeof startDnsServer>[0]>;

/** Mail to `domain` goes to `address` and `port` (by default one of its own); `config` stands beside the DNS server and the port. */
export async function startSending(
  domain: string,
  { address, port: wanted }: { address: string; port?: number },
  more: { records?: Records; config?: object; outbound?: object } = {},
): Promise<Sending> {
  const port = wanted ?? (await freePort());
  const dns = await startDnsServer({
    [domain]: { MX: [`10 mx.${domain}`] },
    [`mx.${domain}`]: { A: [address] },
    ...more.records,
  });
  const receiver = await startReceiver({ address, port });
  const svc = await startAppliance({
    config: {
      dns: { servers: [dns.server] },
      outbound: { port, allow_networks: ["127.0.0.0/8"], ...more.outbound },
      ...more.config,
    },
  });
  const { key } = (await svc.admin("POST", "/v1/keys", { name: "test", scope: "admin" })).json;
  await publish(svc, dns, "ok.test");
  return {
    dns,
    receiver,
    svc,
    key,
    async stop() {
      await svc.stop();
      await Promise.all([receiver.stop(), dns.stop()]);
    },
  };
}
