// /v1/smtp_credentials, on the operator's socket only. One user name an account, as many passwords as
// there are programs that send; a password is shown once, where it is made.
import { z } from "zod";
import type { MadeCredential } from "../../access/access.ts";
import { smtpUsername } from "../../access/credentials.ts";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { Account } from "../../model/account.ts";
import type { SmtpCredential } from "../../model/smtp-credential.ts";
import { label, pageFields } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { credentialCreatedShape, credentialListShape, credentialShape } from "../shapes/access.ts";

const common = {
  scopes: ["admin"],
  bucket: "default",
  doors: "admin",
  query: z.object({}),
  shows: ["name", "test"],
} as const;

export function smtpCredentialRoutes({ store, access, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "Lists the SMTP credentials of an account",
      answers: { 200: credentialListShape },
      path: "/v1/smtp_credentials",
      changes: ["smtp_credentials"],
      query: z.object(pageFields()),
      body: null,
      async handle({ account, query }) {
        const page = pageOf(await store.listSmtpCredentials(account.key), pageRequest(query));
        return json(
          200,
          listBody(page, (credential) => credentialBody(account, credential)),
        );
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials",
      summary: "Makes an SMTP credential",
      answers: { 201: credentialCreatedShape },
      body: z.strictObject({ name: label, test: z.boolean().default(false) }),
      handle: ({ account, body, once }) =>
        once(
          (writing) => access.createCredential(account, body, writing),
          (made) => json(201, withPassword(account, made)),
        ),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials/{id}/rotate",
      summary: "Gives an SMTP credential a new password and ends the old one",
      answers: { 201: credentialCreatedShape },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: ({ account, param, once }) =>
        once(
          (writing) => access.rotateCredential(account, param("id"), writing),
          (made) => json(201, withPassword(account, made)),
        ),
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials/{id}/revoke",
      summary: "Revokes an SMTP credential",
      answers: { 200: credentialShape },
      refuses: ["resource_not_found"],
      body: z.strictObject({}),
      bodyOptional: true,
      handle: ({ account, param, once }) =>
        once(
          (writing) => writing.revokeSmtpCredential(account.key, param("id"), clock.now()),
          (credential) => {
            if (!credential) throw new Refusal("resource_not_found", "There is no such SMTP credential.");
            return json(200, credentialBody(account, credential));
          },
        ),
    }),
  ];
}

/** Where it is made, only. */
function withPassword(
  account: Account,
  { credential, password }: MadeCredential,
): z.input<typeof credentialCreatedShape> {
  return { ...credentialBody(account, credential), password };
}

function credentialBody(account: Account, credential: SmtpCredential): z.input<typeof credentialShape> {
  return {
    id: credential.id,
    name: credential.name,
    username: smtpUsername(account.id, credential.test),
    test: credential.test,
    hint: credential.hint,
    status: credential.status,
    created_at: isoTime(credential.createdAt),
    last_used_at: isoTimeOrNull(credential.lastUsedAt),
    revoked_at: isoTimeOrNull(credential.revokedAt),
  };
}
