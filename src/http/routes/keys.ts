// /v1/keys, on the operator's socket only: no API key of any scope manages keys. A key's value is shown
// once, where it is made.
import { z } from "zod";
import type { WantedKey } from "../../access/access.ts";
import { routeBuckets } from "../../access/buckets.ts";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import { keyScopes, type ApiKey, type KeyStatus } from "../../model/api-key.ts";
import { label, limitFields, network, pageFields, present, time } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { keyCreatedShape, keyListShape, keyShape, limitsBody } from "../shapes/access.ts";

const allowIps = z.array(network).max(100, "has more than 100 networks");
const created = z.strictObject({
  name: label,
  scope: z.enum(keyScopes),
  test: z.boolean().default(false),
  allow_ips: allowIps.default([]),
  expires_at: time.nullable().default(null),
});
const changed = z.strictObject({
  name: label.optional(),
  allow_ips: allowIps.optional(),
  ...limitFields(routeBuckets),
});
const common = {
  scopes: ["admin"],
  bucket: "default",
  doors: "admin",
  query: z.object({}),
  shows: ["name", "scope", "test", "allow_ips", "expires_at", "rates", "daily_quota"],
} as const;
const statusAfter = {
  revoke: ["revoked", "Ends a key at once, for good"],
  disable: ["disabled", "Stops a key until it is enabled again"],
  enable: ["active", "Lets a disabled key work again"],
} as const satisfies Record<string, [KeyStatus, string]>;

export function keyRoutes({ store, access }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<ApiKey> => {
    const key = await store.apiKey(call.account.key, call.param("id"));
    if (!key) throw noKey();
    return key;
  };
  const create = (call: Call<unknown, unknown>, wanted: WantedKey) =>
    call.once(
      (writing) => access.createKey(call.account.key, wanted, writing),
      ({ key, value }) =>
        json(201, { ...keyBody(key), key: value } satisfies z.input<typeof keyCreatedShape>),
    );
  const changes = Object.entries(statusAfter).map(([verb, [status, summary]]) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/keys/{id}/${verb}`,
      summary,
      answers: { 200: keyShape },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: (call) =>
        call.once(
          (writing) => access.setKeyStatus(call.account.key, call.param("id"), status, writing),
          (key) => json(200, keyBody(key)),
        ),
    }),
  );
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/keys",
      summary: "Lists the account's API keys, the oldest first",
      answers: { 200: keyListShape },
      changes: ["keys"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        return json(200, listBody(await store.listApiKeys(account.key, pageRequest(query)), keyBody));
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/keys",
      summary: "Makes an API key; its value is shown this once",
      answers: { 201: keyCreatedShape },
      body: created,
      handle(call) {
        const { name, scope, test, allow_ips: networks, expires_at: expiresAt } = call.body;
        return create(call, { name, scope, test, allowIps: networks, expiresAt });
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/keys/{id}",
      summary: "Shows an API key",
      changes: ["keys"],
      answers: { 200: keyShape },
      refuses: ["resource_not_found"],
      body: null,
      handle: async (call) => json(200, keyBody(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/keys/{id}",
      summary: "Changes an API key's name, networks and limits, from the next request on",
      answers: { 200: keyShape },
      refuses: ["resource_not_found"],
      body: changed,
      handle(call) {
        const { name, allow_ips: networks, rates, daily_quota: dailyQuota } = call.body;
        const change = present({ name, allowIps: networks, rates, dailyQuota });
        return call.once(
          (writing) => writing.changeApiKey(call.account.key, call.param("id"), change),
          (key) => {
            if (!key) throw noKey();
            return json(200, keyBody(key));
          },
        );
      },
    }),
    ...changes,
    route({
      ...common,
      method: "POST",
      path: "/v1/keys/{id}/rotate",
      summary: "Makes a key with the settings of another, which stays valid",
      answers: { 201: keyCreatedShape },
      refuses: ["resource_not_found", "conflict", "validation_failed"],
      body: z.strictObject({}),
      bodyOptional: true,
      async handle(call) {
        const old = await find(call);
        if (old.status === "revoked")
          throw new Refusal("conflict", "The API key is revoked; create a new one.");
        const { name, scope, test, allowIps: networks, expiresAt, rates, dailyQuota } = old;
        return create(call, { name, scope, test, allowIps: networks, expiresAt, rates, dailyQuota });
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
    ...limitsBody(key),
    created_at: isoTime(key.createdAt),
    expires_at: isoTimeOrNull(key.expiresAt),
    last_used_at: isoTimeOrNull(key.lastUsedAt),
    revoked_at: isoTimeOrNull(key.revokedAt),
  };
}

function noKey(): Refusal {
  return new Refusal("resource_not_found", "There is no such API key.");
}
