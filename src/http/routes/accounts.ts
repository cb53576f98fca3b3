// /v1/accounts, on the operator's socket only. A suspended account's keys and logins are refused; what it has queued
// goes on, since it was accepted. Only a suspended account with nothing left to send can be deleted. `default` and the
// account of the appliance's own mail are there from the start and stay.
import { z } from "zod";
import { limitNames, limitsOf } from "../../access/account-limits.ts";
import { accountBuckets } from "../../access/buckets.ts";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import { isId } from "../../ids.ts";
import { defaultAccount, operationsAccount, type Account } from "../../model/account.ts";
import { limitFields, pageFields, present } from "../fields.ts";
import { listBody, pageRequest } from "../paging.ts";
import { json, route, type Call, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { accountListShape, accountShape, limitsBody } from "../shapes/access.ts";

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
  .describe("By name; null goes back to the limit of everybody.");
const noBody = z.strictObject({});
/** Made at the first start, and again were they missing. */
const lasting = [defaultAccount, operationsAccount];
const common = {
  scopes: ["admin"],
  bucket: "default",
  doors: "admin",
  query: z.object({}),
  everybodys: true,
  shows: ["name", "rates", "daily_quota", "limits"],
} as const;
const statusAfter = {
  suspend: ["suspended", "Refuses every key and login of an account; what it has queued goes on"],
  resume: ["active", "Ends the suspension of an account, and the pause of its sending"],
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
    return call.once(
      (writing) => writing.changeAccount(id, wanted),
      (account) => {
        if (!account) throw noAccount();
        return json(200, accountBody(account));
      },
    );
  };
  const changes = Object.entries(statusAfter).map(([verb, [status, summary]]) =>
    route({
      ...common,
      method: "POST",
      path: `/v1/accounts/{account}/${verb}`,
      summary,
      answers: { 200: accountShape },
      refuses: ["resource_not_found", "conflict"],
      body: noBody,
      bodyOptional: true,
      async handle(call) {
        if (status === "suspended" && (await find(call)).name === operationsAccount)
          throw new Refusal("conflict", "The account operations sends the appliance's own mail and stays.");
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
      summary: "Lists the accounts, the oldest first",
      changes: ["accounts"],
      answers: { 200: accountListShape },
      query: z.object(pageFields()),
      body: null,
      handle: async ({ query }) =>
        json(200, listBody(await store.listAccounts(pageRequest(query)), accountBody)),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/accounts",
      summary: "Makes an account",
      answers: { 201: accountShape },
      refuses: ["conflict"],
      body: created,
      locatedBy: "name",
      handle({ body, once }) {
        const now = clock.now();
        const wanted = { id: mint("acct", now), name: body.name, createdAt: now };
        return once(
          (writing) => writing.createAccount(wanted),
          (account) => {
            if (!account) throw new Refusal("conflict", `There is an account ${body.name} already.`);
            return json(201, accountBody(account), { location: `/v1/accounts/${account.name}` });
          },
        );
      },
    }),
    route({
      ...common,
      method: "GET",
      path: "/v1/accounts/{account}",
      summary: "Shows an account, found by its name or id",
      changes: ["accounts"],
      answers: { 200: accountShape },
      refuses: ["resource_not_found"],
      body: null,
      handle: async (call) => json(200, accountBody(await find(call))),
    }),
    route({
      ...common,
      method: "PATCH",
      path: "/v1/accounts/{account}",
      summary: "Changes the limits of an account, from the next request on",
      answers: { 200: accountShape },
      refuses: ["resource_not_found"],
      body: z.strictObject({ ...limitFields(accountBuckets), limits: changedLimits.optional() }),
      handle(call) {
        const { rates, daily_quota: dailyQuota, limits } = call.body;
        return change(call, present({ rates, dailyQuota, limits }));
      },
    }),
    ...changes,
    route({
      ...common,
      method: "DELETE",
      path: "/v1/accounts/{account}",
      summary: "Deletes a suspended account that has nothing left to send",
      answers: { 204: null },
      refuses: ["resource_not_found", "conflict"],
      body: null,
      async handle(call) {
        const { key, id, name, status } = await find(call);
        if (lasting.includes(name))
          throw new Refusal("conflict", `The account ${name} belongs to the appliance and stays.`);
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
        const reply = await call.once(
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

function accountBody(account: Account): z.input<typeof accountShape> {
  const { id, name, status, createdAt } = account;
  if (status === "deleted") throw new Error("a deleted account is not shown");
  return {
    id,
    name,
    status,
    paused_at: isoTimeOrNull(account.pausedAt),
    pause_reason: account.pauseReason,
    ...limitsBody(account),
    limits: limitsOf(account),
    created_at: isoTime(createdAt),
  };
}

function noAccount(): Refusal {
  return new Refusal("resource_not_found", "There is no such account.");
}
