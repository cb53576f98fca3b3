// Visits that no person made: proxies of mail programs that load every image, scanners that follow every link, prefetching
// browsers. They are marked, not dropped. A request shows itself by its headers or its address; a scanner that looks like
// a browser, by following links faster than a person can. Its first link cannot be told from a person's.
import { createNetworks } from "../access/networks.ts";
import type { Clock } from "../clock.ts";
import { createFairMap } from "../fairness/fair-map.ts";

export interface Visitor {
  ip: string;
  /** Its beginning, where it is long. */
  userAgent: string;
  /** The request says that nobody has asked for it yet (Sec-Purpose, Purpose, X-Moz). */
  prefetch: boolean;
}

/** What the User-Agent of a machine holds. */
const machineAgents = new RegExp(
  [
    "GoogleImageProxy", // Gmail loads through it, when the mail is opened and before
    "YahooMailProxy",
    "(?<!cu)bot\\b|crawler|spider|slurp|scanner",
    "preview|facebookexternalhit|WhatsApp|SkypeUri",
    "Barracuda|Proofpoint|Mimecast|Symantec|MessageLabs|FireEye|Trellix|Trend ?Micro|Sophos|Forcepoint|Cloudmark|BitDefender|Zscaler",
    "HeadlessChrome|PhantomJS|Puppeteer|Playwright",
    "\\bcurl/|\\bWget/|python-|Go-http-client|Java/|okhttp|libwww-perl|node-fetch|axios/|Apache-HttpClient|Ruby\\b",
  ].join("|"),
  "i",
);

/** Addresses that load or follow without a person. */
const machineNetworks = [
  "17.0.0.0/8", // Apple: what its Mail Privacy Protection loads without a relay
  "66.249.64.0/19", // Google: image proxy and crawlers
  "66.102.0.0/20",
  "40.94.0.0/16", // Microsoft: Defender for Office 365 (Safe Links)
  "67.231.144.0/20", // Proofpoint
  "148.163.128.0/19",
  "205.220.160.0/19",
  "64.235.144.0/20", // Barracuda
  "209.222.80.0/21",
  "205.139.110.0/23", // Mimecast
  "207.211.30.0/23",
];

/** Apple's Mail Privacy Protection sends this and no more, from relays that anybody may use. */
const appleAgent = "Mozilla/5.0";

const networks = createNetworks(machineNetworks);

/** By what the request says of itself. */
export function isMachine({ ip, userAgent, prefetch }: Visitor): boolean {
  const agent = userAgent.trim();
  if (prefetch || agent === "" || agent === appleAgent) return true;
  return machineAgents.test(agent) || networks.has(ip);
}

/** Two links within a second, or three within ten, and what follows within ten of those. */
const quickMs = 1_000;
const burstMs = 10_000;
const burstLinks = 3;
const mostRecipients = 10_000;
const mostLinks = 8;

export interface ClickBursts {
  /** True where the recipient's links are followed faster than a person does. */
  isBurst(accountKey: number, recipientKey: number, link: string): boolean;
}

interface Recent {
  links: { link: string; at: number }[];
  burstAt: number | null;
}

export function createClickBursts(clock: Pick<Clock, "monotonic">): ClickBursts {
  const recent = createFairMap<Recent>(mostRecipients);
  return {
    isBurst(accountKey, recipientKey, link) {
      const now = clock.monotonic();
      const key = String(recipientKey);
      const before = recent.get(key) ?? { links: [], burstAt: null };
      const links = before.links.filter((other) => other.link !== link && now - other.at <= burstMs);
      const quick = links.some(({ at }) => now - at <= quickMs) || links.length + 1 >= burstLinks;
      const goesOn = before.burstAt !== null && now - before.burstAt <= burstMs;
      const burstAt = quick || goesOn ? now : before.burstAt;
      recent.set(accountKey, key, { links: [...links, { link, at: now }].slice(-mostLinks), burstAt });
      return quick || goesOn;
    },
  };
}
