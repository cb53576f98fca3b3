// The types of event that can happen, an entry each; entry.ts says what an entry has. A new type is an entry here and a
// call of the recorder (record.ts) where it happens: endpoints that get all events get it too.
//
// One event is one recipient's, so counts are per recipient. A bounce whose kind is not known is a bounce and neither hard
// nor soft. Loads by machines count among the opens and clicks, and not among the unique ones: those are the first that a
// person made.
import { z } from "zod";
import { hourMs, isoTime } from "../clock.ts";
import { bounceSources, bounceTypes, complaintTypes } from "../model/bounce.ts";
import { defaultPool } from "../model/ip-pool.ts";
import { count, ipAddress, timestamp } from "../value-schemas.ts";
import { addressEvent, recipientEvent, type CountedData, type EventCatalog } from "./entry.ts";
import { cause, listing, reply, tried, visit } from "./fields.ts";
import { sampleListing, sampleSession, sampleTls, sampleVisit } from "./sample.ts";

const unique = ({ first, machine }: CountedData): boolean => first === true && machine !== true;

export const eventCatalog = {
  "message.delivered": recipientEvent({
    bit: 1,
    meaning:
      "The receiving server accepted the message with a 250 after the final dot. It does not mean that a person saw it.",
    state: "delivered",
    counters: { delivered: true },
    data: { ...reply, ...tried },
    sample: () => ({
      smtp_code: "250",
      smtp_status: "2.0.0",
      smtp_response: "2.0.0 Ok: queued as 4XyZ12abcd",
      ...sampleSession,
      attempt: 1,
      delivery_time_ms: 1200,
      tls: sampleTls,
    }),
  }),
  "message.deferred": recipientEvent({
    bit: 2,
    meaning: "A temporary failure; the message is tried again. It does not mean that the address is bad.",
    state: "deferred",
    counters: { deferred: true },
    data: { ...reply, ...tried, next_attempt_at: timestamp, bounce_type: z.literal("soft"), ...cause },
    sample: (now) => ({
      smtp_code: "450",
      smtp_status: "4.7.1",
      smtp_response: "4.7.1 Greylisted, please try again later",
      ...sampleSession,
      attempt: 1,
      delivery_time_ms: 1200,
      tls: sampleTls,
      next_attempt_at: isoTime(now + 60_000),
      bounce_type: "soft",
      bounce_classification: "greylisted",
      bounce_category: "policy",
    }),
  }),
  "message.bounced": recipientEvent({
    bit: 4,
    meaning:
      "Delivery ended without success. Only some bounces mean that the address is bad: see bounce_classification.",
    state: "bounced",
    counters: {
      bounced: true,
      bouncedHard: ({ bounceType }) => bounceType === "hard",
      bouncedSoft: ({ bounceType }) => bounceType === "soft",
    },
    data: {
      bounce_type: z
        .enum(bounceTypes)
        .describe(
          "hard: a permanent failure. soft: temporary failures until the message expired. undetermined: the report does not say.",
        ),
      ...cause,
      ...reply,
      attempt: count,
      source: z.enum(bounceSources),
      suppressed: z.boolean().describe("This event put the recipient on the suppression list."),
      reported_at: timestamp.nullable().optional().describe("The date of the report, if the source is dsn."),
    },
    sample: () => ({
      bounce_type: "hard",
      bounce_classification: "invalid_recipient",
      bounce_category: "recipient",
      smtp_code: "550",
      smtp_status: "5.1.1",
      smtp_response: "5.1.1 The email account that you tried to reach does not exist",
      ...sampleSession,
      attempt: 1,
      source: "smtp",
      suppressed: false,
    }),
  }),
  "message.opened": recipientEvent({
    bit: 8,
    meaning: "The tracking pixel was loaded, by a person or by a machine.",
    counters: { opened: true, uniqueOpened: unique },
    data: visit,
    sample: () => sampleVisit,
  }),
  "message.clicked": recipientEvent({
    bit: 16,
    meaning: "A tracked link was followed.",
    counters: { clicked: true, uniqueClicked: unique },
    data: { ...visit, url: z.string() },
    sample: () => ({ ...sampleVisit, url: "https://shop.example/" }),
  }),
  "message.complained": recipientEvent({
    bit: 32,
    meaning: "The recipient's provider reported the message as unwanted.",
    counters: { complained: true, complainedUnconfirmed: ({ confirmed }) => confirmed === false },
    data: {
      complaint_source: z.string().describe("The feedback loop, else generic_arf."),
      complaint_type: z.enum(complaintTypes),
      feedback_type: z.string().describe("The Feedback-Type of the report (RFC 5965), in lower case."),
      reported_at: timestamp,
      sending_ip: ipAddress.nullable(),
    },
    sample: (now) => ({
      complaint_source: "generic_arf",
      complaint_type: "abuse",
      feedback_type: "abuse",
      reported_at: isoTime(now),
      sending_ip: sampleSession.sending_ip,
    }),
  }),
  "message.unsubscribed": recipientEvent({
    bit: 64,
    meaning: "The recipient used the unsubscribe link or header.",
    counters: { unsubscribed: true },
    data: { method: z.enum(["one_click", "link", "mailto"]) },
    sample: () => ({ method: "one_click" }),
  }),
  "ip.blacklisted": addressEvent({
    bit: 128,
    meaning: "A sending address was found on a DNS blocklist.",
    data: {
      ...listing,
      listing_reason: z.string(),
      detected_at: timestamp,
      return_code: z.string().describe("The codes that the list answered with, separated by commas."),
      removal_url: z.string().nullable().describe("The page where a removal is asked for; null: not known."),
    },
    sample: (now) => ({
      ...sampleListing,
      listing_reason: "A webhook test",
      detected_at: isoTime(now),
      affected_pools: [defaultPool],
      return_code: "127.0.0.2",
      removal_url: "https://dnsbl.example/remove",
      test: true,
    }),
  }),
  "ip.delisted": addressEvent({
    bit: 256,
    meaning: "A sending address is no longer on a DNS blocklist.",
    data: { ...listing, listed_at: timestamp, delisted_at: timestamp, duration_seconds: count },
    sample: (now) => ({
      ...sampleListing,
      listed_at: isoTime(now - hourMs),
      delisted_at: isoTime(now),
      duration_seconds: 3600,
      affected_pools: [defaultPool],
      test: true,
    }),
  }),
} satisfies EventCatalog;

export type EventType = keyof typeof eventCatalog;
export const eventTypes = Object.keys(eventCatalog) as EventType[];

export function isEventType(name: string): name is EventType {
  return Object.hasOwn(eventCatalog, name);
}
