// Schemas of the values that bodies of the API and of events are made of: an id, a time, an address, a reply code. The
// schema of an event's data is events/'s, that of a resource http/'s. Nothing is parsed by them while it is answered or
// recorded: the API's description derives from them, and the compiler checks what is written against their `z.input`.
import { z } from "zod";
import type { IdPrefix } from "./ids.ts";
import { tlsPolicies } from "./model/tls.ts";

/** A prefix and a ULID (ids.ts). */
export function idOf(prefix: IdPrefix) {
  return z
    .string()
    .regex(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`))
    .meta({ examples: [`${prefix}_01kb2v8x4m5n6p7q8r9s0t1v2w`] });
}

/** ISO 8601, UTC, milliseconds: what isoTime (clock.ts) writes. */
export const timestamp = z.iso.datetime({ precision: 3 }).meta({
  description: "UTC, with milliseconds.",
  as: {
    type: "string",
    format: "date-time",
    pattern: "^[0-9-]{10}T[0-9:]{8}\\.[0-9]{3}Z$",
    examples: ["2026-11-27T09:15:22.123Z"],
  },
});

/** An email address as it is shown; RFC 5321 and SMTPUTF8 allow more than the format `email` does. */
export const emailAddress = z.string().meta({ examples: ["someone@example.net"] });

export const ipAddress = z.union([z.ipv4(), z.ipv6()]).meta({ examples: ["192.0.2.10"] });

export const count = z.int().min(0);

/** Reply codes are strings of three digits in every interface. */
export const smtpCode = z
  .string()
  .regex(/^[2-5][0-9]{2}$/)
  .meta({ examples: ["550"] });

/** RFC 3463. */
export const smtpStatus = z
  .string()
  .regex(/^[245]\.[0-9]{1,3}\.[0-9]{1,3}$/)
  .meta({ examples: ["5.1.1"] });

/** The TLS session of an attempt, and what required it; null in clear. */
export const tlsSchema = z
  .strictObject({
    version: z
      .string()
      .nullable()
      .meta({
        description:
          "null where the policy required TLS and the attempt ended before it was up, as `cipher`.",
        examples: ["TLSv1.3"],
      }),
    cipher: z.string().nullable(),
    verified: z.boolean().meta({
      description: "The certificate is valid for the MX host, or matched a TLSA record.",
    }),
    policy: z.enum(tlsPolicies),
  })
  .meta({ id: "Tls" });
