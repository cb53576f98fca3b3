// /v1/smtp_credentials, on the operator's socket only. One user name an account, as many passwords as
// there are programs that send; a password is shown once, where it is made.
import { z } from "zod";
import { smtpUsername } from "../../access/credentials.ts";
import { isoTime, isoTimeOrNull } from "../../clock.ts";
import { Refusal } from "../../errors.ts";
import type { Account, SmtpCredential } from "../../store/store.ts";
import { label, pageFields } from "../fields.ts";
import { listBody, pageOf, pageRequest } from "../paging.ts";
import { json, route, type Route } from "../route.ts";
import type { RouteDeps } from "../deps.ts";
import { credentialCreatedShape, credentialListShape, credentialShape } from "../shapes/access.ts";

const common = { scopes: ["admin"], bucket: "default", doors: "admin", query: z.object({}) } as const;

export function smtpCredentialRoutes({ store, access, clock }: RouteDeps): Route[] {
  return [
    route({
      ...common,
      method: "GET",
      summary: "Lists the SMTP credentials of an account",
      answers: { 200: credentialListShape },
      path: "/v1/smtp_credentials",
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
      async handle({ account, body }) {
        const { credential, password } = await access.createCredential(account, body);
        return json(201, { ...credentialBody(account, credential), password });
      },
    }),
    route({
      ...common,
      method: "POST",
      path: "/v1/smtp_credentials/{id}/rotate",
      summary: "Makes a second credential like this one",
      answers: { 201: credentialCreatedShape },
      refuses: ["resource_not_found", "conflict"],
      body: z.strictObject({}),
      bodyOptional: true,
      async handle(call) {
        const { credential, password } = await access.rotateCredential(call.account, call.param("id"));
        return json(201, { ...credentialBody(call.account, credential), password });
      },
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
      async handle(call) {
        const credential = await store.revokeSmtpCredential(call.account.key, call.param("id"), clock.now());
        if (!credential) throw new Refusal("resource_not_found", "There is no such SMTP credential.");
        return json(200, credentialBody(call.account, credential));
      },
    }),
  ];
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
