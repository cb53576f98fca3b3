// /v1/domains: the domains that an account may send from, and the DNS records that each has to publish. Private keys
// come in and are never shown. What may be set of a domain, and what a rotation does, is decided by domains/.
// Over 300 lines: schema, view and ten routes of one resource.
import { z } from "zod";
import { mostOf, withinLimit } from "../../access/account-limits.ts";
import { isoTimeOrNull } from "../../clock.ts";
import { returnPathInUse } from "../../domains/records.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { complaintsAddress } from "../../feedback/mailbox.ts";
import { parseDomain } from "../../mail/address.ts";
import { readDkimKey } from "../../mail/dkim-key.ts";
import { dkimAlgorithms, dkimKeyStatuses, type DkimKey } from "../../model/dkim-key.ts";
import { recordPurposes, recordStatuses, recordTypes } from "../../model/dns-record.ts";
import { domainStatuses, type SenderDomain } from "../../model/domain.ts";
import { isSimulated } from "../../sandbox/simulator.ts";
import { emailAddress, idOf, timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { domainName, pageFields, present } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, keepReply, route, type Call, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

const recordSchema = z
  .strictObject({
    purpose: z.enum(recordPurposes),
    type: z.enum(recordTypes),
    name: z.string(),
    value: z.string(),
    required: z.boolean().describe("The domain is verified when every required record is correct."),
    status: z.enum(recordStatuses),
    found: z.array(z.string()).describe("What the DNS has, shortened."),
    issue: z.string().nullable().describe("What to do about it; null if nothing."),
  })
  .meta({ id: "DnsRecord" });

const dkimSchema = z
  .strictObject({
    selector: z.string(),
    algorithm: z.enum(dkimAlgorithms),
    status: z
      .enum(dkimKeyStatuses)
      .describe(
        "pending: signs once its record is found in the DNS. retired: no longer signs; its record must stay published for a while.",
      ),
    retired_at: timestamp.nullable(),
  })
  .meta({ id: "DkimKey" });

export const domainSchema = z
  .strictObject({
    id: idOf("dom"),
    name: z.string().describe("The domain name, in A-labels."),
    status: z
      .enum(domainStatuses)
      .describe("degraded: it was verified and fails now; mail from it is accepted for 72 hours."),
    records: z.array(recordSchema),
    dkim: z.array(dkimSchema),
    tracking: z.strictObject({
      enabled: z.boolean().describe("Whether messages from the domain may be tracked."),
      opens: z.boolean().describe("The default for messages that do not set it."),
      clicks: z.boolean().describe("The default for messages that do not set it."),
    }),
    tracking_domain: z.string().nullable(),
    return_path_domain: z.string(),
    return_path_in_use: z
      .string()
      .describe(
        "A new return path is used once its records are found in the DNS; until then, the previous one.",
      ),
    allow_subdomains: z
      .boolean()
      .describe("Whether mail may come from its subdomains that are not added as domains themselves."),
    feedback_address: emailAddress.describe("The address to which feedback loops send complaints."),
    created_at: timestamp,
    updated_at: timestamp,
    verified_at: timestamp.nullable(),
    checked_at: timestamp.nullable(),
    failing_since: timestamp.nullable(),
  })
  .meta({ id: "Domain" });

export const domainListSchema = list(domainSchema);

const recordView = viewOf(recordSchema);
const dkimView = viewOf(dkimSchema, {
  retired_at: ({ retiredAt }: DkimKey) => isoTimeOrNull(retiredAt ?? null),
});

/** `hostname`: the server's own, whose mailbox takes complaints. */
const domainView = viewOf(domainSchema, {
  records: ({ records }: SenderDomain) => records.map(recordView),
  dkim: ({ dkimKeys }: SenderDomain) => dkimKeys.map(dkimView),
  tracking: ({ trackingEnabled, trackOpens, trackClicks }: SenderDomain) => ({
    enabled: trackingEnabled,
    opens: trackOpens,
    clicks: trackClicks,
  }),
  return_path_in_use: returnPathInUse,
  feedback_address: (_: SenderDomain, hostname: string) => complaintsAddress(hostname),
});

const verifyTimeoutMs = 10_000;
const auditFields = [
  "name",
  "tracking",
  "tracking_domain",
  "return_path_domain",
  "allow_subdomains",
  "selector",
];
const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "both",
  query: z.object({}),
  auditFields,
} as const;

const longestPem = 16_384;
const dkimFields = {
  selector: z
    .string()
    .max(100, "is longer than 62 characters")
    .optional()
    .describe(
      "The selector of the key that is brought, else of the RSA key; the selector of the other key is one letter longer.",
    ),
  private_key: z
    .string()
    .max(longestPem, `is longer than ${longestPem} characters`)
    .superRefine((pem, context) => {
      const key = pem.length > longestPem ? null : readDkimKey(pem);
      if (key?.ok === false) context.addIssue({ code: "custom", message: key.issue });
    })
    .optional()
    .describe("PEM: RSA with 2048 to 4096 bits, or Ed25519. The key of the other kind is generated."),
};

const rotated = z.strictObject(dkimFields);
const added = z.strictObject({
  name: z.string().min(1, "is empty").max(1000),
  dkim: rotated.optional(),
});

const changed = z.strictObject({
  tracking: z
    .strictObject({
      enabled: z.boolean().optional(),
      opens: z.boolean().optional(),
      clicks: z.boolean().optional(),
    })
    .optional(),
  tracking_domain: domainName.nullable().optional(),
  return_path_domain: domainName.nullable().optional().describe("null: the default return path."),
  allow_subdomains: z.boolean().optional(),
});

const dkimInput = inputOf(rotated);
const changeInput = inputOf(changed, { tracking: null });

export function domainRoutes({ store, domains, config }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<SenderDomain> => {
    const name = parseDomain(call.param("name"));
    const domain = name.ok ? await store.domainByName(call.account.key, name.value) : null;
    if (!domain) throw new Refusal("resource_not_found", "There is no such domain.");
    return domain;
  };
  const body = (domain: SenderDomain) => domainView(domain, config.hostname);
  /** What one can do to a domain that is one write. */
  const act = {
    ...common,
    method: "POST",
    answers: { 200: domainSchema },
    refuses: ["resource_not_found", "conflict"],
  } as const;

  return [
    route({
      ...common,
      method: "POST",
      path: "/v1/domains",
      summary: "Add a sender domain; the answer has its DKIM keys and the DNS records to publish",
      answers: { 201: domainSchema },
      refuses: ["conflict"],
      body: added,
      problems: ({ name }) => Promise.resolve(simulatorProblems(name)),
      locatedBy: "name",
      handle: ({ listener, account, body: { name, dkim }, idempotent }) =>
        idempotent(
          (writing) =>
            withinLimit(account, "domains", () =>
              domains.add(
                account.key,
                name,
                writing,
                dkimInput(dkim ?? {}),
                listener === "admin" ? undefined : mostOf(account.limits, "domains"),
              ),
            ),
          (domain) => json(201, body(domain), { location: `/v1/domains/${domain.name}` }),
        ),
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/domains",
      summary: "List domains",
      answers: { 200: domainListSchema },
      lastModifiedFrom: ["domains"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listDomains(account.key), pageRequest(query));
        return json(200, listBody(page, body));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/domains/{name}",
      summary: "Get a domain, with the state of its DNS records at the last check",
      answers: { 200: domainSchema },
      refuses: ["resource_not_found"],
      lastModifiedFrom: ["domains"],
      body: null,
      handle: async (call) => json(200, body(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/domains/{name}",
      summary: "Update the return path, tracking and subdomains of a domain",
      answers: { 200: domainSchema },
      refuses: ["resource_not_found", "conflict"],
      body: changed,
      async handle(call) {
        const { tracking } = call.body;
        const tracked = present({
          trackingEnabled: tracking?.enabled,
          trackOpens: tracking?.opens,
          trackClicks: tracking?.clicks,
        });
        const change = { ...changeInput(call.body), ...tracked };
        const domain = await find(call);
        return call.idempotent(
          (writing) => domains.update(domain, change, writing),
          (updated) => json(200, body(updated)),
        );
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/domains/{name}",
      summary: "Delete a domain and its DKIM keys",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        const { name } = await find(call);
        return call.idempotent(
          (writing) => writing.deleteDomain(call.account.key, name),
          () => ({ status: 204 }),
        );
      },
    }),
    route({
      ...act,
      path: "/v1/domains/{name}/verify",
      summary: "Verify the DNS records of a domain",
      body: z.strictObject({}),
      bodyOptional: true,
      timeoutMs: verifyTimeoutMs,
      upstream: true,
      async handle(call) {
        const domain = await domains.verify(await find(call)); // asks the network, and saves what it saw before the answer
        refuseUnseen(domain);
        return keepReply(call.idempotent, json(200, body(domain)));
      },
    }),
    route({
      ...act,
      path: "/v1/domains/{name}/dkim/rotate",
      summary: "Rotate the DKIM keys of a domain; the new ones sign once they are found in the DNS",
      body: rotated,
      bodyOptional: true,
      async handle(call) {
        const domain = await find(call);
        return call.idempotent(
          (writing) => domains.rotate(domain, dkimInput(call.body), writing),
          (rotated) => json(200, body(rotated)),
        );
      },
    }),
    // The operator's own:
    ...(["suspend", "resume"] as const).map((verb) =>
      route({
        ...act,
        listeners: "admin",
        path: `/v1/domains/{name}/${verb}`,
        summary:
          verb === "suspend"
            ? "Suspend a domain: mail from it is refused"
            : "Resume a suspended domain; it must be verified again",
        body: z.strictObject({}),
        bodyOptional: true,
        async handle(call) {
          const domain = await find(call);
          return call.idempotent(
            (writing) => domains[verb](domain, writing),
            (done) => json(200, body(done)),
          );
        },
      }),
    ),
  ];
}

/** If no record could be looked up, the resolver failed, and nothing was found out. */
function refuseUnseen({ name, records }: SenderDomain): void {
  const required = records.filter((record) => record.required);
  if (required.length === 0 || required.some((record) => record.status !== "unknown")) return;
  throw new Refusal(
    "upstream_error",
    `None of the DNS records of ${name} could be looked up. ${required[0]?.issue ?? ""}`,
  );
}

/** Mail of the simulator's domain is played by it, under any account's test key. */
function simulatorProblems(given: unknown): Problem[] {
  const name = typeof given === "string" ? parseDomain(given.trim().replace(/\.$/, "")) : null;
  if (!name?.ok || !isSimulated(name.value)) return [];
  return [
    { field: "name", code: "validation_failed", issue: "belongs to the simulator and cannot send mail" },
  ];
}
