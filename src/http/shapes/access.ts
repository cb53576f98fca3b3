// What the operator's socket answers about accounts, keys and SMTP credentials.
import { z } from "zod";
import { accountLimits, limitNames, type LimitName } from "../../access/account-limits.ts";
import { accountBuckets } from "../../access/buckets.ts";
import { liveAccountStatuses } from "../../model/account.ts";
import { keyScopes, keyStatuses } from "../../model/api-key.ts";
import type { Limits } from "../../model/limits.ts";
import { credentialStatuses } from "../../model/smtp-credential.ts";
import { idOf, list, timestamp } from "./common.ts";

const limitFields = {
  rates: z
    .partialRecord(
      z.enum(accountBuckets),
      z.strictObject({ burst: z.int().min(1), per_second: z.int().min(1) }),
    )
    .describe("Those that differ from the rates of everybody, by bucket.")
    .meta({ id: "Rates" }),
  daily_quota: z.int().min(0).nullable().describe("Messages accepted in a day of UTC; null: any number."),
};
const limitsShape = z.strictObject(limitFields);

export function limitsBody({ rates, dailyQuota }: Limits): z.input<typeof limitsShape> {
  const shown = Object.entries(rates).map(([bucket, { burst, perSecond }]) => [
    bucket,
    { burst, per_second: perSecond },
  ]);
  return { rates: Object.fromEntries(shown), daily_quota: dailyQuota };
}

type LimitShapes = Record<LimitName, ReturnType<typeof limitShape>>;
const limitShape = (name: LimitName) => z.int().min(0).nullable().describe(accountLimits[name].of);

export const accountShape = z
  .strictObject({
    id: idOf("acct"),
    name: z.string(),
    status: z.enum(liveAccountStatuses),
    paused_at: timestamp.nullable().describe("Sending is paused since then, and queued mail is held."),
    pause_reason: z.string().nullable(),
    ...limitFields,
    limits: z
      .strictObject(Object.fromEntries(limitNames.map((name) => [name, limitShape(name)])) as LimitShapes)
      .describe("What the account may have of each; null: half of what the other accounts leave.")
      .meta({ id: "AccountLimits" }),
    created_at: timestamp,
  })
  .meta({ id: "Account" });
export const accountListShape = list(accountShape);

const keyFields = {
  id: idOf("key"),
  name: z.string(),
  scope: z.enum(keyScopes),
  test: z.boolean(),
  hint: z.string(),
  allow_ips: z.array(z.string()),
  status: z.enum(keyStatuses),
  ...limitFields,
  created_at: timestamp,
  expires_at: timestamp.nullable(),
  last_used_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
};
export const keyShape = z.strictObject(keyFields).meta({ id: "Key" });
export const keyListShape = list(keyShape);
export const keyCreatedShape = z
  .strictObject({ ...keyFields, key: z.string().describe("Shown this once.") })
  .meta({ id: "KeyCreated" });

const credentialFields = {
  id: idOf("cred"),
  name: z.string(),
  username: z.string(),
  test: z.boolean(),
  hint: z.string(),
  status: z.enum(credentialStatuses),
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
};
export const credentialShape = z.strictObject(credentialFields).meta({ id: "SmtpCredential" });
export const credentialListShape = list(credentialShape);
export const credentialCreatedShape = z
  .strictObject({ ...credentialFields, password: z.string().describe("Shown this once.") })
  .meta({ id: "SmtpCredentialCreated" });
