// The resources under which the description groups its operations, by the first word of their paths.
const tags: Record<string, string> = {
  messages: "Sending messages, and their status.",
  suppressions: "Addresses that no mail is sent to.",
  suppression_count: "How many addresses no mail is sent to, by reason.",
  events: "The event stream, to poll; webhooks push the same records.",
  stats: "Counters and rates over time.",
  webhooks: "HTTPS endpoints that receive events.",
  domains: "Sender domains, and the DNS records that each has to publish.",
  ip_pools: "Pools of the IP addresses that mail is sent from.",
  ips: "The IP addresses of all pools.",
  ip_assignments: "The assignment of the machine's IP addresses to accounts.",
  probe: "The road of mail to a mailbox.",
  blacklists: "What DNS blocklists say of the sending addresses, and which are asked.",
  shaping:
    "How hard mailbox providers and domains are pushed: connections, rate, messages per connection, TLS.",
  service: "Health of the server, and the description of the API. No API key is required.",
  accounts: "Accounts.",
  keys: "API keys.",
  smtp_credentials: "Logins of the SMTP relay.",
  audit: "The audit log.",
  queue: "What waits to be sent, why, and what the operator does with it.",
  recipients: "Erasure of recipients.",
  inbox: "The local inbox: mail that a test key or `serve --dev` caught instead of sending it.",
  certificates: "The certificates that the listeners serve.",
  backups: "Backups of the server.",
  database: "Check of the database and the files of content.",
  retention: "Deletion of expired data.",
  doctor: "Checks of the server, and of what is around it.",
  maintenance: "The maintenance window, during which clients are refused.",
  status: "The status of the server.",
  activity: "What the server does now.",
  lockouts: "Source addresses that are locked out after failed authentications.",
  logs: "The log of the server.",
  reload: "The reload of what can be read again while the server runs.",
};

export function tagOf(path: string): string {
  return /^\/v1\/([\w-]+)/.exec(path)?.[1]?.replace("-", "_") ?? "service";
}

/** In the order above; those that it says nothing of come last, and the linter asks for their words. */
export function tagList(used: ReadonlySet<string>): { name: string; description?: string }[] {
  const described = Object.entries(tags)
    .filter(([name]) => used.has(name))
    .map(([name, description]) => ({ name, description }));
  const bare = [...used].filter((name) => !Object.hasOwn(tags, name)).map((name) => ({ name }));
  return [...described, ...bare];
}
