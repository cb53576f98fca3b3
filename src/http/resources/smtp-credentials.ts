// /v1/smtp_credentials, on the operator's socket only. One user name for an account, and any number of passwords, one for
// each program that sends; a password is shown once, at creation.
import { z } from "zod";
import type { MadeCredential } from "../../access/access.ts";
import { smtpUsername } from "../../access/credentials.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import { credentialStatuses, type SmtpCredential } from "../../model/smtp-credential.ts";
import { idOf, timestamp } from "../../value-schemas.ts";
import { viewOf } from "../codec.ts";
import type { RouteDeps } from "../deps.ts";
import { label, pageFields } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import { list } from "../view-fields.ts";

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
const credentialSchema = z.strictObject(credentialFields).meta({ id: "SmtpCredential" });
const credentialCreatedSchema = z
  .strictObject({ ...credentialFields, password: z.string().describe("Shown only once.") })
  .meta({ id: "SmtpCredentialCreated" });

const username = ({ test }: SmtpCredential, { id }: Account): string => smtpUsername(id, test);
const credentialView = viewOf(credentialSchema, { username });

const common = {
  scopes: ["admin"],
  bucket: "default",
  listeners: "admin",
  query: z.object({}),
  auditFields: ["name", "test"],
} as const;

export function smtpCredentialRoutes({ store, access, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "List SMTP credentials",
      answers: { 200: list(credentialSchema) },
      path: "/v1/smtp_credentials",
      lastModifiedFrom: ["smtp_credentials"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listSmtpCredentials(account.key), pageRequest(query));
        return json(
          200,
          listBody(page, (credential) => credentialView(credential, account)),
        );
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials",
      summary: "Create an SMTP credential; its password is shown only in this answer",
      answers: { 201: credentialCreatedSchema },
      body: z.strictObject({ name: label, test: z.boolean().default(false) }),
      handle: ({ account, body, idempotent }) =>
        idempotent(
          (writing) => access.createCredential(account, body, writing),
          (made) => json(201, withPassword(account, made)),
        ),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials/{id}/rotate",
      summary: "Rotate the password of an SMTP credential; the old password is revoked",
      answers: { 201: credentialCreatedSchema },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: ({ account, param, idempotent }) =>
        idempotent(
          (writing) => access.rotateCredential(account, param("id"), writing),
          (made) => json(201, withPassword(account, made)),
        ),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials/{id}/revoke",
      summary: "Revoke an SMTP credential",
      answers: { 200: credentialSchema },
      refuses: ["resource_not_found"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: ({ account, param, idempotent }) =>
        idempotent(
          (writing) => writing.revokeSmtpCredential(account.key, param("id"), clock.now()),
          (credential) => {
            if (!credential) throw new Refusal("resource_not_found", "There is no such SMTP credential.");
            return json(200, credentialView(credential, account));
          },
        ),
    }),
  ];
}

/** Where it is made, only. */
function withPassword(
  account: Account,
  { credential, password }: MadeCredential,
): z.input<typeof credentialCreatedSchema> {
  return { ...credentialView(credential, account), password };
}
