// /v1/domains: the domains that an account may send from, and the DNS records that each has to publish. Their private
// keys come in and are never shown. What may be set of one, and what a rotation does, is domains' to say.
import { z } from "zod";
import { mostOf, withinLimit } from "../../access/account-limits.ts";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { returnPathInUse } from "../../domains/records.ts";
import { complaintsAddress } from "../../feedback/mailbox.ts";
import { parseDomain } from "../../mail/address.ts";
import { readDkimKey } from "../../mail/dkim-key.ts";
import type { SenderDomain } from "../../model/domain.ts";
import { isSimulated } from "../../sandbox/simulator.ts";
import { domainName, pageFields, present } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { domainListShape, domainShape } from "../shapes/domains.ts";

const verifyTimeoutMs = 10_000;
const shows = ["name", "tracking", "tracking_domain", "return_path_domain", "allow_subdomains", "selector"];
const common = { scopes: ["admin"], bucket: "default", doors: "both", query: z.object({}), shows } as const;

const longestPem = 16_384;
const dkimFields = {
  selector: z
    .string()
    .max(100, "is longer than 62 characters")
    .optional()
    .describe("Of the key that is brought, else of the RSA key; the other's is a letter longer."),
  private_key: z
    .string()
    .max(longestPem, `is longer than ${longestPem} characters`)
    .superRefine((pem, context) => {
      const key = pem.length > longestPem ? null : readDkimKey(pem);
      if (key?.ok === false) context.addIssue({ code: "custom", message: key.issue });
    })
    .optional()
    .describe("PEM: RSA of 2048 to 4096 bits, or Ed25519. The key of the other kind is made."),
};

const added = z.strictObject({
  name: z.string().min(1, "is empty").max(1000),
  dkim: z.strictObject(dkimFields).optional(),
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
  return_path_domain: domainName.nullable().optional().describe("null: the one that is chosen by itself."),
  allow_subdomains: z.boolean().optional(),
});

export function domainRoutes({ store, domains, config }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<SenderDomain> => {
    const name = parseDomain(call.param("name"));
    const domain = name.ok ? await store.domainByName(call.account.key, name.value) : null;
    if (!domain) throw new Refusal("resource_not_found", "There is no such domain.");
    return domain;
  };
  const body = (domain: SenderDomain) => domainBody(domain, config.hostname);
  /** What one can do to a domain that is one write. */
  const act = {
    ...common,
    method: "POST",
    answers: { 200: domainShape },
    refuses: ["resource_not_found", "conflict"],
  } as const;

  return [
    route({
      ...common,
      method: "POST",
      path: "/v1/domains",
      summary: "Adds a domain to send from, with its DKIM keys and the records to publish",
      answers: { 201: domainShape },
      refuses: ["conflict"],
      body: added,
      problems: ({ name }) => Promise.resolve(simulatorProblems(name)),
      locatedBy: "name",
      handle: ({ door, account, body: { name, dkim }, once }) =>
        once(
          (writing) =>
            withinLimit(account, "domains", () =>
              domains.add(
                account.key,
                name,
                writing,
                ownDkim(dkim ?? {}),
                door === "admin" ? undefined : mostOf(account.limits, "domains"),
              ),
            ),
          (domain) => json(201, body(domain), { location: `/v1/domains/${domain.name}` }),
        ),
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/domains",
      summary: "Lists the domains",
      answers: { 200: domainListShape },
      changes: ["domains"],
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
      summary: "Reads one domain, with what the DNS showed of its records when they were last looked at",
      answers: { 200: domainShape },
      refuses: ["resource_not_found"],
      changes: ["domains"],
      body: null,
      handle: async (call) => json(200, body(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/domains/{name}",
      summary: "Sets the return path, tracking and subdomains of a domain",
      answers: { 200: domainShape },
      refuses: ["resource_not_found", "conflict", "tracking_disabled"],
      body: changed,
      problems: ({ tracking }) => Promise.resolve(trackingProblems(tracking)),
      async handle(call) {
        const { tracking, ...given } = call.body;
        const change = present({
          trackOpens: tracking?.opens,
          trackClicks: tracking?.clicks,
          trackingDomain: given.tracking_domain,
          returnPathDomain: given.return_path_domain,
          allowSubdomains: given.allow_subdomains,
        });
        const domain = await find(call);
        return call.once(
          (writing) => domains.update(domain, change, writing),
          (updated) => json(200, body(updated)),
        );
      },
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/domains/{name}",
      summary: "Removes a domain with its keys",
      answers: { 204: null },
      refuses: ["resource_not_found"],
      body: null,
      async handle(call) {
        const { name } = await find(call);
        return call.once(
          (writing) => writing.deleteDomain(call.account.key, name),
          () => ({ status: 204 }),
        );
      },
    }),
    route({
      ...act,
      path: "/v1/domains/{name}/verify",
      summary: "Asks the DNS for the domain's records",
      body: z.strictObject({}),
      bodyOptional: true,
      timeoutMs: verifyTimeoutMs,
      upstream: true,
      async handle(call) {
        const domain = await domains.verify(await find(call)); // asks the network, and saves what it saw before the answer
        refuseUnseen(domain);
        return call.once(
          () => Promise.resolve(domain),
          (verified) => json(200, body(verified)),
        );
      },
    }),
    route({
      ...act,
      path: "/v1/domains/{name}/dkim/rotate",
      summary: "Makes new DKIM keys, which sign once they are seen in the DNS",
      body: z.strictObject(dkimFields),
      bodyOptional: true,
      async handle(call) {
        const domain = await find(call);
        return call.once(
          (writing) => domains.rotate(domain, ownDkim(call.body), writing),
          (rotated) => json(200, body(rotated)),
        );
      },
    }),
    // The operator's own:
    ...(["suspend", "resume"] as const).map((verb) =>
      route({
        ...act,
        doors: "admin",
        path: `/v1/domains/{name}/${verb}`,
        summary:
          verb === "suspend" ? "Stops mail from a domain" : "Lets a suspended domain be verified again",
        body: z.strictObject({}),
        bodyOptional: true,
        async handle(call) {
          const domain = await find(call);
          return call.once(
            (writing) => domains[verb](domain, writing),
            (done) => json(200, body(done)),
          );
        },
      }),
    ),
  ];
}

/** Where of no record anything could be told, it is the resolver that failed, and nothing was found out. */
function refuseUnseen({ name, records }: SenderDomain): void {
  const required = records.filter((record) => record.required);
  if (required.length === 0 || required.some((record) => record.status !== "unknown")) return;
  throw new Refusal(
    "upstream_error",
    `The DNS could be asked about none of the records of ${name}. ${required[0]?.issue ?? ""}`,
  );
}

/** Mail of the simulator's domain is played by it, under any account's test key. */
function simulatorProblems(given: unknown): Problem[] {
  const name = typeof given === "string" ? parseDomain(given.trim().replace(/\.$/, "")) : null;
  if (!name?.ok || !isSimulated(name.value)) return [];
  return [{ field: "name", code: "validation_failed", issue: "is the simulator's, and sends no mail" }];
}

/** It would be a promise that nothing keeps: links and pixels are not rewritten by this version. */
function trackingProblems(given: unknown): Problem[] {
  const wanted = typeof given === "object" && given !== null && "enabled" in given && given.enabled === true;
  const issue = "cannot be true: this server has no tracking host, so nothing would be tracked";
  return wanted ? [{ field: "tracking.enabled", code: "tracking_disabled", issue }] : [];
}

function ownDkim({
  selector,
  private_key: privateKey,
}: {
  selector?: string | undefined;
  private_key?: string | undefined;
}) {
  return { selector, privateKey };
}

function domainBody(domain: SenderDomain, hostname: string): z.input<typeof domainShape> {
  return {
    id: domain.id,
    name: domain.name,
    status: domain.status,
    records: domain.records.map(({ purpose, type, name, value, required, status, found, issue }) => ({
      purpose,
      type,
      name,
      value,
      required,
      status,
      found,
      issue,
    })),
    dkim: domain.dkimKeys.map(({ selector, algorithm, status, retiredAt }) => ({
      selector,
      algorithm,
      status,
      retired_at: isoTimeOrNull(retiredAt ?? null),
    })),
    tracking: { enabled: false, opens: domain.trackOpens, clicks: domain.trackClicks },
    tracking_domain: domain.trackingDomain,
    return_path_domain: domain.returnPathDomain,
    return_path_in_use: returnPathInUse(domain),
    allow_subdomains: domain.allowSubdomains,
    feedback_address: complaintsAddress(hostname),
    created_at: isoTime(domain.createdAt),
    updated_at: isoTime(domain.updatedAt),
    verified_at: isoTimeOrNull(domain.verifiedAt),
    checked_at: isoTimeOrNull(domain.checkedAt),
    failing_since: isoTimeOrNull(domain.failingSince),
  };
}
