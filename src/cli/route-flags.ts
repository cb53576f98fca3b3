// Written by `npm run docs` of the notes at fields of the API (http/flags.ts): the flags that set them, by route. Each
// PATCH is here, so that the command that calls it has the flag of a field that is noted later.
import type { Flag } from "./verbs.ts";

export const routeFlags = {
  "POST /v1/webhooks": [
    {
      flag: "--description <text>",
      about: "what it is for",
      member: "description",
    },
    {
      flag: "--format <name>",
      about: "signatures: svc, standard (Standard Webhooks) or both",
      member: "format",
    },
  ],
  "PATCH /v1/webhooks/{id}": [
    {
      flag: "--description <text>",
      about: "what it is for",
      member: "description",
    },
    {
      flag: "--format <name>",
      about: "signatures: svc, standard (Standard Webhooks) or both",
      member: "format",
    },
  ],
  "PATCH /v1/domains/{name}": [],
  "POST /v1/ip_pools": [
    {
      flag: "--description <text>",
      about: "what it is for",
      member: "description",
    },
    {
      flag: "--default",
      about: "messages that name no pool use it",
      member: "is_default",
    },
  ],
  "PATCH /v1/ip_pools/{name}": [
    {
      flag: "--description <text>",
      about: "what it is for",
      member: "description",
    },
    {
      flag: "--default",
      about: "messages that name no pool use it",
      member: "is_default",
    },
  ],
  "PATCH /v1/ip_pools/{name}/ips/{ip}": [],
  "PATCH /v1/accounts/{account}": [],
  "PATCH /v1/keys/{id}": [],
  "PATCH /v1/shaping/{name}": [],
} as const satisfies Record<string, readonly Flag[]>;
