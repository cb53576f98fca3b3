// /v1/keys, on the operator's socket only: no API key of any scope manages keys. A key's value is shown
// once, where it is made.
import { z } from "zod";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { ApiKey, KeyStatus } from "../../store/store.ts";
import { label, network, pageFields, time } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { keyCreatedShape, keyListShape, keyShape } from "../shapes/access.ts";

const created = z.strictObject({
  name: label,
  scope: z.enum(["send", "suppressions", "reporting", "admin"]),
  test: z.boolean().default(false),
  allow_ips: z.array(network).max(100, "has more than 100 networks").default([]),
  expires_at: time.nullable().default(null),
});
const common = { scopes: ["admin"], bucket: "default", doors: "admin", query: z.object({}) } as const;
const statusAfter: Record<string, KeyStatus> = { revoke: "revoked", disable: "disabled", enable: "active" };

export function keyRoutes({ store, access }: RouteDeps): Route[] {
  const changes = Object.entries(statusAfter).map(([verb, status]) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/keys/{id}/${verb}`,
      summary: `Makes an API key ${status}`,
      answers: { 200: keyShape },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: async (call) =>
        json(200, keyBody(await access.setKeyStatus(call.account.key, call.param("id"), status))),
    }),
  );
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/keys",
      summary: "Lists the API keys of an account",
      answers: { 200: keyListShape },
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listApiKeys(account.key), pageRequest(query));
        return json(200, listBody(page, keyBody));
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/keys",
      summary: "Makes an API key",
      answers: { 201: keyCreatedShape },
      body: created,
      async handle({ account, body }) {
        const { name, scope, test, allow_ips: allowIps, expires_at: expiresAt } = body;
        const { key, value } = await access.createKey(account.key, {
          name,
          scope,
          test,
          allowIps,
          expiresAt,
        });
        return json(201, { ...keyBody(key), key: value });
      },
    }),
    ...changes,
    route({
      ...common,
      method: "POST",
      path: "/v1/keys/{id}/rotate",
      summary: "Makes a second key like this one",
      answers: { 201: keyCreatedShape },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      async handle(call) {
        const old = (await store.listApiKeys(call.account.key)).find((key) => key.id === call.param("id"));
        if (!old) throw new Refusal("resource_not_found", "There is no such API key.");
        if (old.status === "revoked")
          throw new Refusal("conflict", "The API key is revoked; create a new one.");
        const { name, scope, test, allowIps, expiresAt } = old;
        const { key, value } = await access.createKey(call.account.key, {
          name,
          scope,
          test,
          allowIps,
          expiresAt,
        });
        return json(201, { ...keyBody(key), key: value });
      },
    }),
  ];
}

function keyBody(key: ApiKey): z.input<typeof keyShape> {
  return {
    id: key.id,
    name: key.name,
    scope: key.scope,
    test: key.test,
    hint: key.hint,
    allow_ips: key.allowIps,
    status: key.status,
    created_at: isoTime(key.createdAt),
    expires_at: isoTimeOrNull(key.expiresAt),
    last_used_at: isoTimeOrNull(key.lastUsedAt),
    revoked_at: isoTimeOrNull(key.revokedAt),
  };
}
