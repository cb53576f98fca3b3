// /v1/suppressions: addresses that no mail is sent to. An entry is found by its whole address in canonical form,
// whatever its spelling in the path. A bulk add is all or nothing unless it says `on_invalid: "skip"`. A request that
// accepts text/csv gets the whole list that the filters leave. Over 300 lines: schema, view and five routes of one resource.
import { z } from "zod";
import { mostOf, withinLimit } from "../../access/account-limits.ts";
import { isoTime } from "../../clock.ts";
import type { Cell } from "../../csv.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { canonicalAddress, parseAddress } from "../../mail/address.ts";
import type { PageRequest } from "../../model/page.ts";
import {
  reasonStrength,
  suppressionReasons,
  suppressionSources,
  type NewSuppression,
  type Suppression,
  type SuppressionFilter,
  type SuppressionReason,
} from "../../model/suppression.ts";
import type { Store } from "../../store/store.ts";
import { count, emailAddress, idOf, smtpCode, smtpStatus, timestamp } from "../../value-schemas.ts";
import { csvReply } from "../csv.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { domainName, pageFields, textFilter, time } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

export const suppressionSchema = z
  .strictObject({
    email: emailAddress.describe("As it was first written."),
    reason: z.enum(suppressionReasons),
    source: z.enum(suppressionSources),
    message_id: idOf("msg").nullable(),
    event_id: idOf("evt").nullable(),
    smtp_code: smtpCode.nullable(),
    smtp_status: smtpStatus.nullable(),
    description: z.string().nullable(),
    created_at: timestamp,
    updated_at: timestamp,
    expires_at: timestamp.nullable(),
  })
  .meta({ id: "Suppression" });

export const suppressionListSchema = list(suppressionSchema);

/** The list as a file. */
export const suppressionFile = z.string().meta({
  description:
    "All entries that match the filters, whatever the limit (RFC 4180); the columns are the fields of an entry.",
});

export const suppressionsAddedSchema = z
  .strictObject({
    added: count,
    updated: count.describe("Entries whose reason was replaced by a stronger one."),
    already_suppressed: count,
    invalid: z.array(z.strictObject({ email: z.string(), issue: z.string() })),
    data: z.array(suppressionSchema).describe("The entries as they are now; none of an import."),
  })
  .meta({ id: "SuppressionsAdded" });

export const suppressionCountSchema = z
  .strictObject({
    total: count,
    by_reason: z.strictObject(
      Object.fromEntries(suppressionReasons.map((name) => [name, count])) as Record<
        SuppressionReason,
        typeof count
      >,
    ),
    complete: z.boolean().describe("False: the list is too long to be counted in ten seconds."),
  })
  .meta({ id: "SuppressionCount" });

const suppressionView = viewOf(suppressionSchema);

export const mostAddresses = 1000;
const tooMany = `has more than ${mostAddresses} addresses`;

const reason = z.enum(suppressionReasons).optional();
const description = z.string().max(500, "is longer than 500 characters").nullable().optional();
const entry = z.strictObject({ email: z.string(), reason, description });
const added = z.strictObject({
  emails: z.array(z.string()).min(1, "is empty").max(mostAddresses, tooMany).optional(),
  suppressions: z.array(entry).min(1, "is empty").max(mostAddresses, tooMany).optional(),
  reason,
  description,
  expires_at: time.nullable().optional(),
  on_invalid: z.enum(["fail", "skip"]).optional(),
  source: z.literal("import").optional().describe("They come from another service's list."),
});

const filterFields = {
  reason,
  source: z.enum(suppressionSources).optional(),
  domain: domainName.optional(),
  email_prefix: textFilter.transform((text) => text?.normalize("NFC").toLowerCase()),
  created_after: time.optional(),
  created_before: time.optional(),
};
const counted = z.object(filterFields);
const countedFilterOf = inputOf(counted, {});
const filters = z.object({ ...filterFields, ...pageFields() });

const filterOf = inputOf(filters, { limit: null, cursor: null });

/** An answer comes well before a client has waited too long. */
const longestCountMs = 10_000;

const common = { scopes: ["suppressions"], listeners: "both" } as const;

export function suppressionRoutes({ store, clock }: RouteDeps): Route[] {
  /** Piece by piece, so that other lists have their turn between them. */
  const countOf = async (accountKey: number, filter: SuppressionFilter) => {
    const began = clock.monotonic();
    const sums = Object.fromEntries(suppressionReasons.map((name) => [name, 0])) as Record<
      SuppressionReason,
      number
    >;
    let after: string | null = null;
    do {
      const piece = await store.countSuppressions(accountKey, filter, after);
      for (const name of suppressionReasons) sums[name] += piece.byReason[name] ?? 0;
      after = piece.next;
    } while (after !== null && clock.monotonic() - began < longestCountMs);
    const total = suppressionReasons.reduce((sum, name) => sum + sums[name], 0);
    return { total, by_reason: sums, complete: after === null };
  };

  return [
    route({
      ...common,
      method: "POST",
      path: "/v1/suppressions",
      summary: "Add up to 1,000 addresses to the suppression list",
      answers: { 200: suppressionsAddedSchema, 201: suppressionsAddedSchema },
      refuses: ["invalid_email_address", "conflict"],
      bucket: "suppressions-write",
      query: z.object({}),
      body: added,
      problems: (body) => Promise.resolve([...addressProblems(body), ...expiryProblems(body, clock.now())]),
      async handle({ listener, account, principal, body, idempotent }) {
        const { entries, invalid } = readEntries(
          account.key,
          body.source ?? (principal.kind === "key" ? "api" : "cli"),
          body,
        );
        const most = listener === "admin" ? undefined : mostOf(account.limits, "suppressions");
        const add = async (writing: Store) =>
          body.source === "import"
            ? { ...(await writing.importSuppressions(entries, clock.now(), most)), rows: [] }
            : writing.addSuppressions(entries, clock.now(), most);
        return idempotent(
          (writing) => withinLimit(account, "suppressions", () => add(writing)),
          (result) =>
            json(result.added + result.updated > 0 ? 201 : 200, {
              added: result.added,
              updated: result.updated,
              already_suppressed: result.unchanged,
              invalid,
              data: result.rows.map(suppressionView),
            }),
        );
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/suppressions",
      lastModifiedFrom: ["suppressions"],
      summary: "List suppressions",
      answers: { 200: { "application/json": suppressionListSchema, "text/csv": suppressionFile } },
      bucket: "suppressions-list",
      query: filters,
      body: null,
      async handle({ account, query, prefers }) {
        const filter = filterOf(query);
        if (prefers("text/csv")) {
          const pageOf = (page: PageRequest) => store.listSuppressions(account.key, filter, page);
          return csvReply("suppressions", csvColumns, pageOf, csvCells);
        }
        const page = await store.listSuppressions(account.key, filter, pageRequest(query));
        return json(200, listBody(page, suppressionView));
      },
    }),
    route({
      scopes: ["admin"],
      listeners: "admin",
      method: "GET",
      path: "/v1/suppression_count",
      lastModifiedFrom: ["suppressions"],
      summary: "Count suppressions, by reason",
      answers: { 200: suppressionCountSchema },
      bucket: "suppressions-list",
      query: counted,
      body: null,
      async handle({ account, query }) {
        return json(200, await countOf(account.key, countedFilterOf(query)));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/suppressions/{email}",
      lastModifiedFrom: ["suppressions"],
      summary: "Get the suppression of an address",
      answers: { 200: suppressionSchema },
      refuses: ["resource_not_found"],
      bucket: "suppressions-read",
      query: z.object({}),
      body: null,
      async handle(call) {
        const address = parseAddress(call.param("email"));
        const found =
          address.ok &&
          (await store.suppression(call.account.key, canonicalAddress(address.value), clock.now()));
        if (!found) throw notSuppressed();
        return { ...json(200, suppressionView(found)), lastModified: found.updatedAt };
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/suppressions/{email}",
      summary: "Delete the suppression of an address",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      bucket: "suppressions-delete",
      query: z.object({}),
      body: null,
      async handle(call) {
        const address = parseAddress(call.param("email"));
        if (!address.ok) throw notSuppressed();
        return call.idempotent(
          (writing) => writing.removeSuppression(call.account.key, canonicalAddress(address.value)),
          (removed) => {
            if (!removed) throw notSuppressed();
            return { status: 204 };
          },
        );
      },
    }),
  ];
}

/** What the schema cannot see: which form the body has, and the addresses, unless invalid ones are skipped. */
function addressProblems(body: Record<string, unknown>): Problem[] {
  const { emails, suppressions } = body;
  if ((emails === undefined) === (suppressions === undefined)) {
    return [
      { field: "emails", code: "validation_failed", issue: "or suppressions must be given, and not both" },
    ];
  }
  if (body["on_invalid"] === "skip") return [];
  const texts = Array.isArray(emails) ? emails : Array.isArray(suppressions) ? suppressions.map(emailOf) : [];
  return texts.slice(0, mostAddresses).flatMap((text: unknown, index): Problem[] => {
    const address = typeof text === "string" ? parseAddress(text) : null; // another type is the schema's to name
    const field = emails === undefined ? `suppressions[${index}].email` : `emails[${index}]`;
    return address?.ok === false ? [{ field, code: "invalid_email_address", issue: address.issue }] : [];
  });
}

/** An entry that has ended would be added and never be seen. */
function expiryProblems({ expires_at: given }: Record<string, unknown>, now: number): Problem[] {
  const expiry = time.safeParse(given);
  if (!expiry.success || expiry.data > now) return []; // another form is the schema's to name
  return [{ field: "expires_at", code: "validation_failed", issue: `is past: ${isoTime(expiry.data)}` }];
}

function emailOf(value: unknown): unknown {
  return typeof value === "object" && value !== null && "email" in value ? value.email : undefined;
}

/** The entries of a body, each address once and for the strongest of its reasons; those that are not addresses are listed apart. */
function readEntries(accountKey: number, source: NewSuppression["source"], body: z.output<typeof added>) {
  const wanted =
    body.suppressions ??
    (body.emails ?? []).map((email) => ({ email, reason: undefined, description: undefined }));
  const entries = new Map<string, NewSuppression>();
  const invalid: { email: string; issue: string }[] = [];
  for (const { email, reason: ownReason, description: ownText } of wanted) {
    const address = parseAddress(email);
    if (!address.ok) {
      invalid.push({ email, issue: address.issue });
      continue;
    }
    const canonical = canonicalAddress(address.value);
    const before = entries.get(canonical);
    const wantedReason = ownReason ?? body.reason ?? "manual";
    if (before && reasonStrength[before.reason] >= reasonStrength[wantedReason]) continue;
    entries.set(canonical, {
      accountKey,
      canonical,
      email: before?.email ?? address.value.email,
      reason: wantedReason,
      source,
      description: ownText ?? body.description ?? before?.description ?? null,
      messageId: null,
      eventId: null,
      smtpCode: null,
      smtpStatus: null,
      expiresAt: body.expires_at ?? null,
    });
  }
  return { entries: [...entries.values()], invalid };
}

const csvColumns = Object.keys(suppressionSchema.shape) as (keyof z.input<typeof suppressionSchema>)[];

function csvCells(entry: Suppression): Cell[] {
  const body = suppressionView(entry);
  return csvColumns.map((column) => body[column]);
}

function notSuppressed(): Refusal {
  return new Refusal("resource_not_found", "The address is not suppressed.");
}
