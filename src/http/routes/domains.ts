// /v1/domains: the domains that an account may send from, and the DNS records that each has to publish.
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal, type Problem } from "../../errors.ts";
import { parseDomain } from "../../mail/address.ts";
import { isSimulated } from "../../sandbox/simulator.ts";
import type { SenderDomain } from "../../store/store.ts";
import { pageFields } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";

const verifyTimeoutMs = 10_000;
const common = { scopes: ["admin"], bucket: "default", doors: "both", query: z.object({}) } as const;

export function domainRoutes({ store, domains }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<SenderDomain> => {
    const name = parseDomain(call.param("name"));
    const domain = name.ok ? await store.domainByName(call.account.key, name.value) : null;
    if (!domain) throw new Refusal("resource_not_found", "There is no such domain.");
    return domain;
  };

  return [
    route({
      ...common,
      method: "POST",
      path: "/v1/domains",
      body: z.strictObject({ name: z.string().min(1, "is empty").max(1000) }),
      problems: ({ name }) => Promise.resolve(simulatorProblems(name)),
      locatedBy: "name",
      handle: ({ account, body, once }) =>
        once(
          (writing) => domains.add(account.key, body.name, writing),
          (domain) => json(201, domainBody(domain), { location: `/v1/domains/${domain.name}` }),
        ),
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/domains",
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listDomains(account.key), pageRequest(query));
        return json(200, listBody(page, domainBody));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/domains/{name}",
      body: null,
      handle: async (call) => json(200, domainBody(await find(call))),
    }),
    route({
      ...common,
      method: "DELETE",
      path: "/v1/domains/{name}",
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
      ...common,
      method: "POST",
      path: "/v1/domains/{name}/verify",
      body: z.strictObject({}),
      bodyOptional: true,
      timeoutMs: verifyTimeoutMs,
      upstream: true,
      async handle(call) {
        const domain = await domains.verify(await find(call)); // asks the network, and saves what it saw before the answer
        return call.once(
          () => Promise.resolve(domain),
          (verified) => json(200, domainBody(verified)),
        );
      },
    }),
  ];
}

/** Mail of the simulator's domain is played by it, under any account's test key. */
function simulatorProblems(given: unknown): Problem[] {
  const name = typeof given === "string" ? parseDomain(given.trim().replace(/\.$/, "")) : null;
  if (!name?.ok || !isSimulated(name.value)) return [];
  return [{ field: "name", code: "validation_failed", issue: "is the simulator's, and sends no mail" }];
}

function domainBody(domain: SenderDomain): unknown {
  return {
    id: domain.id,
    name: domain.name,
    status: domain.status,
    return_path_domain: domain.returnPathDomain,
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
    created_at: isoTime(domain.createdAt),
    updated_at: isoTime(domain.updatedAt),
    verified_at: isoTimeOrNull(domain.verifiedAt),
    checked_at: isoTimeOrNull(domain.checkedAt),
  };
}
