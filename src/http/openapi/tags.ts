// The resources under which the description groups its operations, by the first word of their paths.
const tags: Record<string, string> = {
  messages: "Sending, and what became of what was sent.",
  suppressions: "Addresses that are not written to.",
  events: "What happened, to be pulled; the same records that webhooks push.",
  stats: "Counters and rates over time.",
  webhooks: "HTTPS endpoints that events are sent to.",
  domains: "The domains that an account sends from, and the DNS records that each has to publish.",
  ip_pools: "The addresses that mail is sent from, in pools.",
  ips: "The addresses of all pools.",
  ip_assignments: "Which account an address of the machine belongs to.",
  service: "The service itself: its health and its description. No key is asked for.",
  accounts: "Accounts.",
  keys: "API keys.",
  smtp_credentials: "Logins of the SMTP relay.",
  audit: "Who did what.",
  recipients: "People who asked to be forgotten.",
  inbox: "Mail that a test key or `serve --dev` caught in place of sending it.",
  maintenance: "The door that is closed to clients for a while.",
  status: "How the service stands.",
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
