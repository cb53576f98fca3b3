// The operator's mail about sending addresses that came on a DNS blocklist or off one: one mail for all that a run of the
// monitor found, with the list's own reason, and where a removal is asked for.
import { createHash } from "node:crypto";
import type { ListingChange } from "../dnsbl/changes.ts";
import { codeOf } from "../dnsbl/zones.ts";
import { isoTime } from "../clock.ts";
import type { Notices } from "./notices.ts";

/** Of changes in the text; the log and `svc blacklists list` have all. */
const mostShown = 50;

/** `drains`: `dnsbl.on_listing` is drain. */
export async function notifyListings(
  notices: Pick<Notices, "notify">,
  changes: readonly ListingChange[],
  drains: boolean,
): Promise<void> {
  const listed = changes.filter(({ delistedAt }) => delistedAt === null);
  const delisted = changes.filter(({ delistedAt }) => delistedAt !== null);
  const parts = [
    ...(listed.length > 0 ? [subjectOf(listed, "on")] : []),
    ...(delisted.length > 0 ? [subjectOf(delisted, "no longer on")] : []),
  ];
  const texts = changes.slice(0, mostShown).map(textOf);
  if (changes.length > mostShown) texts.push(`${changes.length - mostShown} more.\n`);
  const effect = listed.length === 0 ? [] : [`${drains ? drainText : keepText}\n`];
  await notices.notify(
    causeOf(changes),
    parts.join("; "),
    [...texts, ...effect, "All listings: svc blacklists list\n"].join("\n"),
  );
}

const drainText =
  "New mail leaves from the pool's other addresses (dnsbl.on_listing: drain). Where none of them can be used, or all are listed, mail leaves from this one as before.";
const keepText =
  "Mail leaves from the address as before. With dnsbl.on_listing: drain, new mail would leave from the pool's other addresses.";

function subjectOf([first, ...others]: readonly ListingChange[], where: string): string {
  if (!first) return "";
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return `${first.listing.address} is ${where} the blocklist ${first.zone.name}${more}`;
}

function textOf({ zone, watched, listing, listedAt, delistedAt }: ListingChange): string {
  const pools = watched.pools.map(({ name }) => name).toSorted();
  const codes = listing.codes.map((code) => {
    const meaning = codeOf(zone, code)?.meaning ?? null;
    return meaning === null ? code : `${code} (${meaning})`;
  });
  const lines = [
    `${listing.address} is ${delistedAt === null ? "on" : "no longer on"} the blocklist ${zone.name} (${zone.zone}).`,
    `  pools: ${pools.join(", ")}`,
    `  listed since: ${isoTime(listedAt)}`,
    ...(delistedAt === null
      ? [
          `  code: ${codes.join(", ")}`,
          `  reason: ${listing.reason === null || listing.reason === "" ? "none given" : listing.reason}`,
          `  what to do: find and end the cause, then ask for the removal: ${zone.removalUrl ?? `see the pages of ${zone.zone}`}`,
        ]
      : [`  not listed since: ${isoTime(delistedAt)}`]),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** The same changes are one cause. */
function causeOf(changes: readonly ListingChange[]): string {
  const all = changes.map(
    ({ listing, delistedAt }) => `${listing.address} ${listing.zone} ${delistedAt === null}`,
  );
  return `blocklists:${createHash("sha256").update(all.toSorted().join()).digest("hex").slice(0, 16)}`;
}
