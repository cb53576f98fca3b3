// A mail that streams in by SMTP on its way to the store: its bytes are looked at as they pass, its header
// section is rewritten once (RFC 6409 §8), its options are read, and its authors are checked before the body is kept.
import type { Address, Mailbox } from "../mail/address.ts";
import { MailIntake, type IntakeSummary } from "../mail/intake.ts";
import { rewriteHeaders, type RewrittenHeaders } from "../mail/submit-headers.ts";
import type { Problem } from "../errors.ts";
import type { SenderDomain } from "../store/store.ts";
import { readMetadata, readSendAt, readTags } from "./fields.ts";
import { refuseProblems } from "./refusals.ts";
import { readShape, type Add } from "./shape.ts";

/** What X-Svc-* fields may ask for. */
export interface MailOptions {
  tags: string[];
  metadata: Record<string, string>;
  sendAt: number | null;
}

export interface ReadMail {
  header: RewrittenHeaders;
  /** The first one that From names. */
  author: Mailbox;
  options: MailOptions;
  /** Signs the mail. */
  domain: SenderDomain;
  summary: IntakeSummary;
}

export interface Incoming {
  /** The mail as it is to be stored; throws Refusal, MailSyntaxError, MailTooLarge or what `data` throws. */
  bytes: AsyncIterable<Buffer>;
  /** Once `bytes` has been read to its end. */
  result(): ReadMail;
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
  let begun: Omit<ReadMail, "summary"> | null = null;
  let summary: IntakeSummary | null = null;

  const begin = async (section: Buffer): Promise<Buffer> => {
    begun = await readHeader(section, context);
    return begun.header.section;
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
      if (!begun || !summary) throw new Error("the mail was not read to its end");
      return { ...begun, summary };
    },
  };
}

async function readHeader(section: Buffer, context: IncomingContext): Promise<Omit<ReadMail, "summary">> {
  const { received, messageId, now } = context;
  const header = rewriteHeaders(section, { received, messageId, date: now });
  const [author] = header.from;
  if (!author) throw new Error("rewriteHeaders lets no mail pass that has no author");
  const options = readOptions(header.svc, now);
  const domain = await context.check(header.from.map(({ address }) => address));
  return { header, author, options, domain };
}

/** Options that are not built yet are refused, not dropped. */
function readOptions(fields: Map<string, string>, now: number): MailOptions {
  const problems: Problem[] = [];
  const options: MailOptions = { tags: [], metadata: {}, sendAt: null };
  for (const [name, value] of fields) {
    const report: Add = (_field, issue, code = "validation_failed") =>
      void problems.push({ field: name, code, issue });
    if (name === "x-svc-tags") options.tags = readTags(commaList(value), report);
    else if (name === "x-svc-metadata") options.metadata = readMetadata(jsonStrings(value, report), report);
    else if (name === "x-svc-send-at") options.sendAt = readSendAt(value, now, report);
    else report(name, "is not available yet");
  }
  refuseProblems([{ problems, extras: {} }]);
  return options;
}

function commaList(value: string): string[] {
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function jsonStrings(json: string, add: Add): Record<string, string> {
  let value: unknown = null;
  try {
    value = JSON.parse(json);
  } catch {
    // null is no object of strings either
  }
  return readShape("metadata", value, () => add("", "expected a JSON object of strings")) ?? {};
}
