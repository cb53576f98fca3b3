// /v1/keys, on the operator's socket only: no API key of any scope manages keys. The value of a key is shown once, at
// creation.
import { z } from "zod";
import type { WantedKey } from "../../access/access.ts";
import { routeBuckets } from "../../access/buckets.ts";
import { Refusal } from "../../errors.ts";
import { keyScopes, keyStatuses, type ApiKey, type KeyStatus } from "../../model/api-key.ts";
import { idOf, timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { label, network, pageFields, time } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { limitFields, limitsShown, limitViews } from "./limits.ts";

const keyFields = {
  id: idOf("key"),
  name: z.string(),
  scope: z.enum(keyScopes),
  test: z.boolean(),
  hint: z.string(),
  allow_ips: z.array(z.string()),
  status: z.enum(keyStatuses),
  ...limitsShown,
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
};
const keySchema = z.strictObject(keyFields).meta({ id: "Key" });
const keyCreatedSchema = z
  .strictObject({ ...keyFields, key: z.string().describe("Shown only once.") })
  .meta({ id: "KeyCreated" });

const keyView = viewOf(keySchema, limitViews);
const createdView = viewOf(keyCreatedSchema, { ...limitViews, key: (_: ApiKey, value: string) => value });

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
const createInput = inputOf(created);
const changeInput = inputOf(changed);

const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  query: z.object({}),
  auditFields: ["name", "scope", "test", "allow_ips", "expires_at", "rates", "daily_quota"],
} as const;
const statusAfter = {
  revoke: ["revoked", "Revoke an API key; it cannot be enabled again"],
  disable: ["disabled", "Disable an API key"],
  enable: ["active", "Enable a disabled API key"],
} as const satisfies Record<string, [KeyStatus, string]>;

export function keyRoutes({ store, access }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<ApiKey> => {
    const key = await store.apiKey(call.account.key, call.param("id"));
    if (!key) throw noKey();
    return key;
  };
  const create = (call: Call<unknown, unknown>, wanted: WantedKey) =>
    call.idempotent(
      (writing) => access.createKey(call.account.key, wanted, writing),
      ({ key, value }) => json(201, createdView(key, value)),
    );
  const changes = Object.entries(statusAfter).map(([verb, [status, summary]]) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/keys/{id}/${verb}`,
      summary,
      answers: { 200: keySchema },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: (call) =>
        call.idempotent(
          (writing) => access.setKeyStatus(call.account.key, call.param("id"), status, writing),
          (key) => json(200, keyView(key)),
        ),
    }),
  );
  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/keys",
      summary: "List API keys, oldest first",
      answers: { 200: list(keySchema) },
      lastModifiedFrom: ["keys"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        return json(200, listBody(await store.listApiKeys(account.key, pageRequest(query)), keyView));
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/keys",
      summary: "Create an API key; its value is shown only in this answer",
      answers: { 201: keyCreatedSchema },
      body: created,
      handle(call) {
        return create(call, createInput(call.body));
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/keys/{id}",
      summary: "Get an API key",
      lastModifiedFrom: ["keys"],
      answers: { 200: keySchema },
      refuses: ["resource_not_found"],
      body: null,
      handle: async (call) => json(200, keyView(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/keys/{id}",
      summary: "Update the name, networks and limits of an API key; they apply from the next request",
      answers: { 200: keySchema },
      refuses: ["resource_not_found"],
      body: changed,
      handle(call) {
        const change = changeInput(call.body);
        return call.idempotent(
          (writing) => writing.changeApiKey(call.account.key, call.param("id"), change),
          (key) => {
            if (!key) throw noKey();
            return json(200, keyView(key));
          },
        );
      },
    }),
    ...changes,
    route({
      ...common,
      method: "POST",
      path: "/v1/keys/{id}/rotate",
      summary: "Rotate an API key: create one with the same settings; the old key stays valid",
      answers: { 201: keyCreatedSchema },
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

function noKey(): Refusal {
  return new Refusal("resource_not_found", "There is no such API key.");
}
