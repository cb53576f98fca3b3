// What /v1/domains answers.
import { z } from "zod";
import { dkimAlgorithms, dkimKeyStatuses } from "../../model/dkim-key.ts";
import { recordPurposes, recordStatuses, recordTypes } from "../../model/dns-record.ts";
import { domainStatuses } from "../../model/domain.ts";
import { emailAddress, idOf, list, timestamp } from "./common.ts";

const recordShape = z
  .strictObject({
    purpose: z.enum(recordPurposes),
    type: z.enum(recordTypes),
    name: z.string(),
    value: z.string(),
    required: z.boolean().describe("The domain is verified when every record that is required holds."),
    status: z.enum(recordStatuses),
    found: z.array(z.string()).describe("What the DNS shows, shortened."),
    issue: z.string().nullable().describe("What to do about it; null where nothing is."),
  })
  .meta({ id: "DnsRecord" });

const dkimShape = z
  .strictObject({
    selector: z.string(),
    algorithm: z.enum(dkimAlgorithms),
    status: z
      .enum(dkimKeyStatuses)
      .describe(
        "pending: signs once it is seen in the DNS. retired: signs no more, and stays published a while.",
      ),
    retired_at: timestamp.nullable(),
  })
  .meta({ id: "DkimKey" });

export const domainShape = z
  .strictObject({
    id: idOf("dom"),
    name: z.string().describe("In A-label form."),
    status: z
      .enum(domainStatuses)
      .describe("degraded: it was verified, fails now, and sends for 72 hours more."),
    records: z.array(recordShape),
    dkim: z.array(dkimShape),
    tracking: z.strictObject({
      enabled: z.boolean(),
      opens: z.boolean().describe("Of messages that do not say."),
      clicks: z.boolean().describe("Of messages that do not say."),
    }),
    tracking_domain: z.string().nullable(),
    return_path_domain: z.string(),
    return_path_in_use: z
      .string()
      .describe("A new one is in use once its records are seen; until then it is the one before."),
    allow_subdomains: z.boolean().describe("Subdomains that are no domain of their own may send by it."),
    feedback_address: emailAddress.describe("Where feedback loops send complaints."),
    created_at: timestamp,
    updated_at: timestamp,
    verified_at: timestamp.nullable(),
    checked_at: timestamp.nullable(),
    failing_since: timestamp.nullable(),
  })
  .meta({ id: "Domain" });

export const domainListShape = list(domainShape);
