// A mail that streams in by SMTP on its way to the store: its bytes are looked at as they pass, its header
// section is rewritten once (RFC 6409 §8), its options are read, and its authors are checked before the body is kept.
import { Refusal, type Problem } from "../errors.ts";
import type { Address } from "../mail/address.ts";
import { MailIntake, type IntakeSummary } from "../mail/intake.ts";
import { rewriteHeaders, type RewrittenHeaders } from "../mail/submit-headers.ts";
import type { SenderDomain } from "../store/store.ts";
import { readMetadata, readSendAt, readTags, type Add } from "./fields.ts";

/** What X-Svc-* fields may ask for. */
export interface MailOptions {
  tags: string[];
  metadata: Record<string, string>;
  sendAt: number | null;
}

export interface Incoming {
  /** The mail as it is to be stored; throws Refusal, MailSyntaxError, MailTooLarge or what `data` throws. */
  bytes: AsyncIterable<Buffer>;
  /** Once `bytes` has been read to its end. */
  result(): { header: RewrittenHeaders; options: MailOptions; domain: SenderDomain; summary: IntakeSummary };
}

export interface IncomingContext {
  /** The Received field to put on top. */
  received: string;
  /** The Message-ID for a mail that has none. */
  messageId: string;
  now: number;
  /** The domain that signs for the mail's authors; throws Refusal. */
  check(authors: Address[]): Promise<SenderDomain>;
}

export function readIncoming(data: AsyncIterable<Buffer>, context: IncomingContext): Incoming {
  let header: RewrittenHeaders | null = null;
  let options: MailOptions | null = null;
  let domain: SenderDomain | null = null;
  let summary: IntakeSummary | null = null;

  const begin = async (section: Buffer): Promise<Buffer> => {
    const { received, messageId, now } = context;
    header = rewriteHeaders(section, { received, messageId, date: now });
    options = readOptions(header.svc, now);
    domain = await context.check(header.from.map(({ address }) => address));
    return header.section;
  };

  async function* pass(): AsyncGenerator<Buffer> {
    const intake = new MailIntake();
    for await (const chunk of data) {
      const { section, body } = intake.push(chunk);
      if (section) yield await begin(section);
      if (body.length > 0) yield body;
    }
    const rest = intake.end();
    if (rest.section) yield await begin(rest.section);
    if (rest.body.length > 0) yield rest.body;
    summary = rest.summary;
  }

  return {
    bytes: pass(),
    result() {
      if (!header || !options || !domain || !summary) throw new Error("the mail was not read to its end");
      return { header, options, domain, summary };
    },
  };
}

/** Options that are not built yet are refused, not dropped. */
function readOptions(fields: Map<string, string>, now: number): MailOptions {
  const problems: Problem[] = [];
  const add: Add = (field, issue, code = "validation_failed") => void problems.push({ field, code, issue });
  const options: MailOptions = { tags: [], metadata: {}, sendAt: null };
  for (const [name, value] of fields) {
    const report: Add = (_field, issue, code) => add(name, issue, code);
    if (name === "x-svc-tags") {
      options.tags = readTags(
        value
          .split(",")
          .map((tag) => tag.trim())
          .filter((tag) => tag !== ""),
        report,
      );
    } else if (name === "x-svc-metadata") {
      options.metadata = readMetadata(stringsOf(value, report), report);
    } else if (name === "x-svc-send-at") {
      options.sendAt = readSendAt(value, now, report);
    } else {
      add(name, "is not available yet");
    }
  }
  const [first] = problems;
  if (!first) return options;
  throw new Refusal(first.code, `${first.field}: ${first.issue}`, { errors: problems });
}

function stringsOf(json: string, add: Add): Record<string, string> {
  try {
    const value: unknown = JSON.parse(json);
    const entries =
      typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : null;
    if (entries?.every((entry): entry is [string, string] => typeof entry[1] === "string"))
      return Object.fromEntries(entries);
  } catch {
    // not JSON: reported below with everything else that is no object of strings
  }
  add("", "expected a JSON object of strings");
  return {};
}
