// The blocklists that are asked, as data: the codes that each documents, what they mean, and the page where a removal is
// asked for. A new zone is a row. `dnsbl.zones` replaces this list; the operator's own changes come on top of either.
import type { NamedZone, ZoneChange } from "../model/listing.ts";

export interface ZoneCode {
  /** An address of 127.0.0.0/8, or a range of them: `127.0.0.2-127.0.0.254`. */
  code: string;
  meaning: string | null;
}

/** Where a zone comes from. */
export const zoneSources = ["built_in", "configuration", "added"] as const;

export interface Zone {
  zone: string;
  name: string;
  /** Answers with any other code do not count. */
  codes: readonly ZoneCode[];
  /** null: not known. */
  removalUrl: string | null;
  /** Whether it has IPv6 addresses; null: not known, so its test address is asked (RFC 5782 §5). */
  ipv6: boolean | null;
  source: (typeof zoneSources)[number];
}

export const mostZones = 50;

const knownZones: readonly Omit<Zone, "source">[] = [
  {
    zone: "zen.spamhaus.org",
    name: "Spamhaus ZEN",
    codes: [
      { code: "127.0.0.2", meaning: "SBL: sends or supports spam" },
      { code: "127.0.0.3", meaning: "CSS: sends mail of low reputation" },
      { code: "127.0.0.4", meaning: "XBL: an infected or abused machine" },
      { code: "127.0.0.9", meaning: "DROP: a hijacked or criminal network" },
      { code: "127.0.0.10", meaning: "PBL: by its network's policy it sends no mail itself" },
      { code: "127.0.0.11", meaning: "PBL: by Spamhaus's judgement it sends no mail itself" },
    ],
    removalUrl: "https://check.spamhaus.org/",
    ipv6: true,
  },
  {
    zone: "bl.spamcop.net",
    name: "SpamCop",
    codes: [{ code: "127.0.0.2", meaning: "reported by recipients or spam traps" }],
    removalUrl: "https://www.spamcop.net/bl.shtml",
    ipv6: false,
  },
  {
    zone: "b.barracudacentral.org",
    name: "Barracuda",
    codes: [{ code: "127.0.0.2", meaning: "poor reputation" }],
    removalUrl: "https://www.barracudacentral.org/rbl/removal-request",
    ipv6: false,
  },
  {
    zone: "psbl.surriel.com",
    name: "PSBL",
    codes: [{ code: "127.0.0.2", meaning: "sent mail to a spam trap" }],
    removalUrl: "https://psbl.org/remove",
    ipv6: false,
  },
  {
    zone: "bl.mailspike.net",
    name: "Mailspike",
    codes: [
      { code: "127.0.0.2", meaning: "takes part in a wave of spam" },
      { code: "127.0.0.10", meaning: "the worst reputation" },
      { code: "127.0.0.11", meaning: "a very bad reputation" },
      { code: "127.0.0.12", meaning: "a bad reputation" },
    ],
    removalUrl: "https://mailspike.io/ip_verify",
    ipv6: false,
  },
  {
    zone: "all.spamrats.com",
    name: "SpamRATS",
    codes: [
      { code: "127.0.0.36", meaning: "RATS-Dyna: its reverse name looks like a dynamic address" },
      { code: "127.0.0.37", meaning: "RATS-NoPtr: it has no reverse name" },
      { code: "127.0.0.38", meaning: "RATS-Spam: sends spam" },
      { code: "127.0.0.43", meaning: "RATS-Auth: attacks logins" },
    ],
    removalUrl: "https://www.spamrats.com/removal.php",
    ipv6: false,
  },
];

/** Of a zone that documents nothing to us. */
const anyCode: readonly ZoneCode[] = [{ code: "127.0.0.2-127.0.0.254", meaning: null }];

/** The built-in zones by name, as the configuration and the operator name them. */
export const builtInZones: readonly Zone[] = knownZones.map((known) => ({ ...known, source: "built_in" }));

/** The zones to ask, by name. `configured`: those of `dnsbl.zones`; empty: the built-in ones. */
export function zonesOf(configured: readonly NamedZone[], changes: readonly ZoneChange[]): Zone[] {
  const zones = new Map<string, Zone>();
  if (configured.length === 0) for (const zone of builtInZones) zones.set(zone.zone, zone);
  for (const named of configured) zones.set(named.zone, zoneOf(named, "configuration"));
  for (const { watched, ...named } of changes)
    if (watched) zones.set(named.zone, zoneOf(named, "added", zones.get(named.zone)));
    else zones.delete(named.zone);
  return [...zones.values()].toSorted((a, b) => (a.zone < b.zone ? -1 : 1));
}

/** What is not said of a zone is as it was before, or as the program knows it. */
function zoneOf(
  { zone, name, codes, removalUrl }: NamedZone,
  source: Zone["source"],
  before?: Omit<Zone, "source">,
): Zone {
  const known = before ?? knownZones.find((one) => one.zone === zone);
  return {
    zone,
    name: name ?? known?.name ?? zone,
    codes: codes?.map((code) => ({ code, meaning: null })) ?? known?.codes ?? anyCode,
    removalUrl: removalUrl ?? known?.removalUrl ?? null,
    ipv6: known?.ipv6 ?? null,
    source,
  };
}

/** The row of a code; undefined: the zone does not document it. */
export function codeOf({ codes }: Pick<Zone, "codes">, code: string): ZoneCode | undefined {
  const wanted = numberOf(code);
  return codes.find((one) => {
    const [from = "", to = from] = one.code.split("-");
    return numberOf(from) <= wanted && wanted <= numberOf(to);
  });
}

function numberOf(address: string): number {
  return address.split(".").reduce((sum, octet) => sum * 256 + Number(octet), 0);
}
