// What the operator's socket answers about keys and SMTP credentials.
import { z } from "zod";
import { idOf, list, timestamp } from "./common.ts";

const keyFields = {
  id: idOf("key"),
  name: z.string(),
  scope: z.enum(["send", "suppressions", "reporting", "admin"]),
  test: z.boolean(),
  hint: z.string(),
  allow_ips: z.array(z.string()),
  status: z.enum(["active", "disabled", "revoked"]),
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
  status: z.enum(["active", "revoked"]),
  created_at: timestamp,
  last_used_at: timestamp.nullable(),
  revoked_at: timestamp.nullable(),
};
export const credentialShape = z.strictObject(credentialFields).meta({ id: "SmtpCredential" });
export const credentialListShape = list(credentialShape);
export const credentialCreatedShape = z
  .strictObject({ ...credentialFields, password: z.string().describe("Shown this once.") })
  .meta({ id: "SmtpCredentialCreated" });
