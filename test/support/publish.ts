// Adds a sender domain to a running appliance, publishes its records in the test's DNS and has it verified.
import type { Appliance } from "./appliance.ts";
import type { DnsServer, RecordType } from "./dns-server.ts";

interface ShownRecord {
  type: RecordType;
  name: string;
  value: string;
}

export async function publish(
  svc: Pick<Appliance, "admin">,
  dns: Pick<DnsServer, "set">,
  domain: string,
): Promise<void> {
  const added = await svc.admin("POST", "/v1/domains", { name: domain });
  if (added.status !== 201) throw new Error(`the domain was not added: ${added.status} ${added.text}`);
  for (const { type, name, value } of added.json.records as ShownRecord[]) dns.set(name, type, [value]);
  const verified = await svc.admin("POST", `/v1/domains/${domain}/verify`);
  if (verified.json?.status !== "verified") throw new Error(`the domain was not verified: ${verified.text}`);
}
