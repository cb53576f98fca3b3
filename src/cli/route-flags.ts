// Written by `npm run docs` of the notes at fields of the API (http/flags.ts): the flags that set them, by route.
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
} as const satisfies Record<string, readonly Flag[]>;
