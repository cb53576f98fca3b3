// What any Store must do, whatever engine is behind it, by noun. An engine's own test calls this with a way to open an
// empty store.
import { describe } from "vitest";
import { acceptanceContract } from "./acceptance.ts";
import { accountContract } from "./accounts.ts";
import { apiKeyContract } from "./api-keys.ts";
import { bootContract } from "./boots.ts";
import { contentContract } from "./content.ts";
import { domainContract } from "./domains.ts";
import { engineContract } from "./engine.ts";
import { eventContract } from "./events.ts";
import { leaseContract } from "./leases.ts";
import { listingContract } from "./listings.ts";
import { messageListContract } from "./message-lists.ts";
import { mtaStsContract } from "./mta-sts.ts";
import { queueContract } from "./queue.ts";
import { queueEntryContract } from "./queue-entries.ts";
import { reportContract } from "./reports.ts";
import { retentionContract } from "./retention.ts";
import { settlementContract } from "./settlement.ts";
import { shapingContract } from "./shaping.ts";
import { smtpCredentialContract } from "./smtp-credentials.ts";
import { suppressionContract } from "./suppressions.ts";
import { textContract } from "./text.ts";
import { tlsResultContract } from "./tls-results.ts";
import { trackingContract } from "./tracking.ts";
import { warmupContract } from "./warmups.ts";
import { webhookContract } from "./webhooks.ts";
import type { OpenStore } from "./opened.ts";

const contracts = [
  acceptanceContract,
  accountContract,
  apiKeyContract,
  bootContract,
  contentContract,
  domainContract,
  engineContract,
  eventContract,
  leaseContract,
  listingContract,
  messageListContract,
  mtaStsContract,
  queueContract,
  queueEntryContract,
  reportContract,
  retentionContract,
  settlementContract,
  shapingContract,
  smtpCredentialContract,
  suppressionContract,
  textContract,
  tlsResultContract,
  trackingContract,
  warmupContract,
  webhookContract,
];

export function storeContract(engine: string, open: OpenStore): void {
  describe(`the store's contract, ${engine}`, () => {
    for (const contract of contracts) contract(open);
  });
}
