// /v1/blacklists, on the operator's socket only: what DNS blocklists say of the addresses that mail leaves from, and the
// zones that are asked. Looking and judging is dnsbl/'s. A change of zones holds from the next look-up on.
import { z } from "zod";
import { isoTimeOrNull } from "../../clock.ts";
import type { WatchedListings, ZoneState } from "../../dnsbl/dnsbl.ts";
import { codeOf, mostZones, zoneSources, zonesOf } from "../../dnsbl/zones.ts";
import { Refusal } from "../../errors.ts";
import { codeRangePattern, listingAnswers } from "../../model/listing.ts";
import { ipAddress, timestamp } from "../../value-schemas.ts";
import type { RouteDeps } from "../deps.ts";
import { domainName, pageFields } from "../fields.ts";
import { listBody, namedPageOf, pageRequest } from "../paging.ts";
import { json, operatorRoute, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { ipAddressField } from "./ips.ts";

const zoneHealths = ["ok", "broken", "unknown", "untested"] as const;
const removalUrl = z.string().nullable().describe("The page where a removal is asked for; null: not known.");

const atZoneSchema = z
  .strictObject({
    blacklist_name: z.string(),
    blacklist_zone: z.string(),
    status: z
      .enum(listingAnswers)
      .describe("What two look-ups in a row said; unknown: there is no answer to go by."),
    last_answer: z.enum(listingAnswers).nullable().describe("Of the last look-up; null: there was none yet."),
    detail: z.string().nullable().describe("Why an answer is missing."),
    return_codes: z.array(z.object({ code: z.string(), meaning: z.string().nullable() }).strict()),
    listing_reason: z.string().nullable().describe("The list's TXT record, of a listing."),
    removal_url: removalUrl,
    listed_at: timestamp.nullable(),
    looked_at: timestamp.nullable(),
  })
  .meta({ id: "BlacklistEntry" });

const listingsSchema = z
  .strictObject({
    ip_address: ipAddress.describe("As receivers see it."),
    affected_pools: z.array(z.string()),
    listed: z.boolean(),
    blacklists: z.array(atZoneSchema),
  })
  .meta({ id: "IpBlacklists" });

const zoneSchema = z
  .strictObject({
    zone: z.string(),
    name: z.string(),
    source: z.enum(zoneSources),
    codes: z
      .array(z.object({ code: z.string(), meaning: z.string().nullable() }).strict())
      .describe("The codes that count, and ranges of them."),
    removal_url: removalUrl,
    health: z
      .enum(zoneHealths)
      .describe("By its test addresses (RFC 5782 §5). Only the answers of a zone that is ok count."),
    detail: z.string().nullable().describe("What is wrong with it."),
    tested_at: timestamp.nullable(),
  })
  .meta({ id: "BlacklistZone" });

function listingsView({ address, pools, zones }: WatchedListings): z.input<typeof listingsSchema> {
  const blacklists = zones.map(atZoneView);
  return {
    ip_address: address,
    affected_pools: pools,
    listed: blacklists.some(({ status }) => status === "listed"),
    blacklists,
  };
}

function atZoneView({ zone, tested, listing, listed }: WatchedListings["zones"][number]) {
  const shown = listing !== null && (listed || listing.answer === "listed");
  const health = tested?.health ?? null;
  const unhealthy = health === null || health.status === "ok" ? null : health.detail;
  const ended = listing !== null && listing.listedAt !== null && !listed;
  const silent = ended || unhealthy !== null || listing === null || listing.answer === "unknown";
  const why = unhealthy ?? listing?.detail ?? null;
  return {
    blacklist_name: zone.name,
    blacklist_zone: zone.zone,
    status: listed ? ("listed" as const) : silent ? ("unknown" as const) : ("not_listed" as const),
    last_answer: listing?.answer ?? null,
    detail: ended
      ? `it is listed as far as is known, which counts no more, since the list could not be asked for days: ${why ?? "no answer"}`
      : why,
    return_codes: shown
      ? listing.codes.map((code) => ({ code, meaning: codeOf(zone, code)?.meaning ?? null }))
      : [],
    listing_reason: listed ? (listing?.reason ?? null) : null,
    removal_url: zone.removalUrl,
    listed_at: isoTimeOrNull(listing?.listedAt ?? null),
    looked_at: isoTimeOrNull(listing?.lookedAt ?? null),
  };
}

function zoneView({ zone, tested }: ZoneState): z.input<typeof zoneSchema> {
  const health = tested?.health ?? null;
  return {
    zone: zone.zone,
    name: zone.name,
    source: zone.source,
    codes: [...zone.codes],
    removal_url: zone.removalUrl,
    health: health?.status ?? "untested",
    detail: health === null || health.status === "ok" ? null : health.detail,
    tested_at: isoTimeOrNull(tested?.testedAt ?? null),
  };
}

const newZone = z.strictObject({
  zone: domainName,
  name: z.string().min(1, "is empty").max(100, "is longer than 100 characters").optional(),
  codes: z
    .array(
      z.string().regex(codeRangePattern, "is not a code such as 127.0.0.2, or a range 127.0.0.2-127.0.0.9"),
    )
    .min(1, "has no code")
    .max(64, "has more than 64 codes")
    .optional()
    .describe("The codes that count; if left out, those that the program knows, else 127.0.0.2-127.0.0.254."),
  removal_url: z
    .url({ protocol: /^https?$/, error: "is not an http or https address" })
    .max(1000, "is longer than 1000 characters")
    .optional(),
});

/** A zone may be slow, and its questions come one after the other. */
const slow = { timeoutMs: 55_000 } as const;

export function blacklistRoutes(deps: RouteDeps): Route[] {
  return [...listingRoutes(deps), ...zoneRoutes(deps)];
}

function listingRoutes({ dnsbl }: RouteDeps): Route[] {
  return [
    route({
      ...operatorRoute,
      method: "GET",
      path: "/v1/blacklists",
      summary: "List the sending addresses and what DNS blocklists say of them",
      lastModifiedFrom: "always",
      answers: { 200: list(listingsSchema) },
      query: z.object(pageFields()),
      body: null,
      handle({ query }) {
        const rows = dnsbl.listings().map((row) => ({ ...row, name: row.address }));
        return Promise.resolve(json(200, listBody(namedPageOf(rows, pageRequest(query)), listingsView)));
      },
    }),
    route({
      ...operatorRoute,
      ...slow,
      method: "POST",
      path: "/v1/blacklists/check",
      summary: "Look sending addresses up at the DNS blocklists now",
      answers: { 200: z.strictObject({ data: z.array(listingsSchema) }) },
      refuses: ["resource_not_found"],
      act: null,
      body: z.strictObject({
        ip_address: ipAddressField.optional().describe("This one alone; if left out, all."),
      }),
      bodyOptional: true,
      async handle({ body: { ip_address: address = null } }) {
        const found = await dnsbl.check(address);
        if (address !== null && found.length === 0)
          throw new Refusal(
            "resource_not_found",
            `${address} is not an address that mail leaves from, or receivers see no public address of it.`,
          );
        return json(200, { data: found.map(listingsView) });
      },
    }),
  ];
}

function zoneRoutes({ dnsbl, config }: RouteDeps): Route[] {
  const isAsked = (name: string): boolean => dnsbl.zones().some(({ zone }) => zone.zone === name);
  return [
    route({
      ...operatorRoute,
      method: "GET",
      path: "/v1/blacklists/zones",
      summary: "List the DNS blocklists that are asked",
      lastModifiedFrom: "always",
      answers: { 200: list(zoneSchema) },
      query: z.object(pageFields()),
      body: null,
      handle({ query }) {
        const rows = dnsbl.zones().map((row) => ({ ...row, name: row.zone.zone }));
        return Promise.resolve(json(200, listBody(namedPageOf(rows, pageRequest(query)), zoneView)));
      },
    }),
    route({
      ...operatorRoute,
      method: "POST",
      path: "/v1/blacklists/zones",
      act: "blacklists.zones.create",
      summary: "Add a DNS blocklist, or a removed one again",
      answers: { 201: zoneSchema },
      refuses: ["conflict"],
      body: newZone,
      auditFields: ["zone", "name", "codes", "removal_url"],
      locatedBy: "zone",
      async handle(call) {
        const { zone, name = null, codes = null, removal_url: removal = null } = call.body;
        const change = { zone, watched: true, name, codes, removalUrl: removal };
        const added = zonesOf(config.dnsbl.zones, [change]).filter((one) => one.zone === zone);
        const reply = await call.idempotent(
          async (writing) => {
            if (isAsked(zone)) throw new Refusal("conflict", `The blocklist ${zone} is asked already.`);
            if (dnsbl.zones().length >= mostZones)
              throw new Refusal("conflict", `At most ${mostZones} blocklists are asked; remove one first.`);
            await writing.putZoneChange(change);
            return added.map((one) => zoneView({ zone: one, tested: null }));
          },
          ([shown]) => json(201, shown, { location: `/v1/blacklists/zones/${zone}` }),
        );
        await dnsbl.zonesChanged();
        return reply;
      },
    }),
    route({
      ...operatorRoute,
      method: "DELETE",
      path: "/v1/blacklists/zones/{zone}",
      summary: "Stop asking a DNS blocklist, and forget what it said",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        const zone = call.param("zone").toLowerCase();
        const isConfigured = zonesOf(config.dnsbl.zones, []).some((one) => one.zone === zone);
        const gone = { zone, watched: false, name: null, codes: null, removalUrl: null };
        const reply = await call.idempotent(
          async (writing) => {
            if (!isAsked(zone)) throw noZone();
            if (isConfigured) await writing.putZoneChange(gone);
            else await writing.removeZoneChange(zone);
          },
          () => ({ status: 204 }),
        );
        await dnsbl.zonesChanged();
        return reply;
      },
    }),
    route({
      ...operatorRoute,
      ...slow,
      method: "POST",
      path: "/v1/blacklists/zones/{zone}/test",
      summary: "Test a DNS blocklist by its test addresses",
      answers: { 200: zoneSchema },
      refuses: ["resource_not_found"],
      act: null,
      body: null,
      async handle(call) {
        const state = await dnsbl.test(call.param("zone").toLowerCase());
        if (!state) throw noZone();
        return json(200, zoneView(state));
      },
    }),
  ];
}

function noZone(): Refusal {
  return new Refusal("resource_not_found", "There is no such blocklist among those that are asked.");
}
