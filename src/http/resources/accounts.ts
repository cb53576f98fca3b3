// /v1/accounts, on the operator's socket only. The keys and logins of a suspended account are refused; its queued mail is
// still sent, since it was accepted. Only a suspended account with nothing left to send can be deleted. `default` and the
// account of the appliance's own mail exist from the start and stay.
import { z } from "zod";
import { accountLimits, limitNames, limitsOf, type LimitName } from "../../access/account-limits.ts";
import { accountBuckets } from "../../access/buckets.ts";
import { Refusal } from "../../errors.ts";
import { isId } from "../../ids.ts";
import { defaultAccount, liveAccountStatuses, operationsAccount, type Account } from "../../model/account.ts";
import { idOf, timestamp } from "../../value-schemas.ts";
import { inputOf, viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { pageFields } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, operatorRoute, route, type Call, type Route } from "../route.ts";
import { list } from "../view-fields.ts";
import { limitFields, limitsShown, limitViews } from "./limits.ts";

type LimitSchemas = Record<LimitName, ReturnType<typeof limitSchema>>;
const limitSchema = (name: LimitName) => z.int().min(0).nullable().describe(accountLimits[name].of);

const accountSchema = z
  .strictObject({
    id: idOf("acct"),
    name: z.string(),
    status: z.enum(liveAccountStatuses),
    paused_at: timestamp
      .nullable()
      .describe("When sending was paused; queued mail is held until it is resumed."),
    pause_reason: z.string().nullable(),
    ...limitsShown,
    limits: z
      .strictObject(Object.fromEntries(limitNames.map((name) => [name, limitSchema(name)])) as LimitSchemas)
      .describe("How much of each the account may have; null: half of what the other accounts leave.")
      .meta({ id: "AccountLimits" }),
    created_at: timestamp,
  })
  .meta({ id: "Account" });

const accountView = viewOf(accountSchema, {
  ...limitViews,
  status({ status }: Account) {
    if (status === "deleted") throw new Error("a deleted account is not shown");
    return status;
  },
  limits: limitsOf,
});

const created = z.strictObject({
  name: z
    .string()
    .regex(
      /^(?!acct_)[a-z0-9][a-z0-9_-]{0,63}$/,
      "is 1 to 64 of a-z, 0-9, - and _, and does not begin with acct_",
    ),
});
const mostOfAll = 1_000_000_000;
const changedLimits = z
  .partialRecord(z.enum(limitNames), z.int("is a whole number").min(0).max(mostOfAll).nullable())
  .describe("By name; null restores the default limit.");
const changed = z.strictObject({ ...limitFields(accountBuckets), limits: changedLimits.optional() });
const changeInput = inputOf(changed);
const noBody = z.strictObject({});
/** Made at the first start, and again were they missing. */
const lasting = [defaultAccount, operationsAccount];
const common = {
  ...operatorRoute,
  auditFields: ["name", "rates", "daily_quota", "limits"],
} as const;
const statusAfter = {
  suspend: [
    "suspended",
    "Suspend an account: its keys and logins are refused, its queued mail is still sent",
  ],
  resume: ["active", "Resume an account that is suspended or whose sending is paused"],
} as const;

export function accountRoutes({ store, guard, pools, clock, mint }: RouteDeps): Route[] {
  const find = async (call: Call<unknown, unknown>): Promise<Account> => {
    const text = call.param("account");
    const account = isId("acct", text) ? await store.accountById(text) : await store.accountByName(text);
    if (!account || account.status === "deleted") throw noAccount();
    return account;
  };
  const change = async (call: Call<unknown, unknown>, wanted: Parameters<typeof store.changeAccount>[1]) => {
    const { id } = await find(call);
    return call.idempotent(
      (writing) => writing.changeAccount(id, wanted),
      (account) => {
        if (!account) throw noAccount();
        return json(200, accountView(account));
      },
    );
  };
  const changes = Object.entries(statusAfter).map(([verb, [status, summary]]) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/accounts/{account}/${verb}`,
      summary,
      answers: { 200: accountSchema },
      refuses: ["resource_not_found", "conflict"],
      body: noBody,
      bodyOptional: true,
      async handle(call) {
        if (status === "suspended" && (await find(call)).name === operationsAccount)
          throw new Refusal(
            "conflict",
            "The account operations sends the appliance's own mail and cannot be suspended.",
          );
        if (status === "active") await guard.resume(await find(call));
        return change(call, { status });
      },
    }),
  );

  return [
    route({
      ...common,
      method: "GET",
      path: "/v1/accounts",
      summary: "List accounts, oldest first",
      lastModifiedFrom: ["accounts"],
      answers: { 200: list(accountSchema) },
      query: z.object(pageFields()),
      body: null,
      handle: async ({ query }) =>
        json(200, listBody(await store.listAccounts(pageRequest(query)), accountView)),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/accounts",
      summary: "Create an account",
      answers: { 201: accountSchema },
      refuses: ["conflict"],
      body: created,
      locatedBy: "name",
      handle({ body, idempotent }) {
        const now = clock.now();
        const wanted = { id: mint("acct", now), name: body.name, createdAt: now };
        return idempotent(
          (writing) => writing.createAccount(wanted),
          (account) => {
            if (!account) throw new Refusal("conflict", `There is an account ${body.name} already.`);
            return json(201, accountView(account), { location: `/v1/accounts/${account.name}` });
          },
        );
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/accounts/{account}",
      summary: "Get an account by its name or id",
      lastModifiedFrom: ["accounts"],
      answers: { 200: accountSchema },
      refuses: ["resource_not_found"],
      body: null,
      handle: async (call) => json(200, accountView(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/accounts/{account}",
      summary: "Update the limits of an account; they apply from the next request",
      answers: { 200: accountSchema },
      refuses: ["resource_not_found"],
      body: changed,
      handle(call) {
        return change(call, changeInput(call.body));
      },
    }),
    ...changes,
    route({
      ...common,
      method: "DELETE",
      path: "/v1/accounts/{account}",
      summary: "Delete a suspended account that has nothing left to send",
      answers: { 204: null },
      refuses: ["resource_not_found", "conflict"],
      body: null,
      async handle(call) {
        const { key, id, name, status } = await find(call);
        if (lasting.includes(name))
          throw new Refusal(
            "conflict",
            `The account ${name} belongs to the appliance and cannot be deleted.`,
          );
        if (status !== "suspended")
          throw new Refusal(
            "conflict",
            "Suspend the account first, so that nothing more is accepted from it.",
          );
        if (await store.hasUnsent(key))
          throw new Refusal(
            "conflict",
            "The account has mail that is still to be sent; wait for it or cancel it.",
          );
        const reply = await call.idempotent(
          (writing) => writing.deleteAccount(id, clock.now()),
          (deleted) => {
            if (!deleted) throw new Refusal("conflict", "The account was resumed meanwhile.");
            return { status: 204 };
          },
        );
        await pools.changed(key);
        return reply;
      },
    }),
  ];
}

function noAccount(): Refusal {
  return new Refusal("resource_not_found", "There is no such account.");
}
