// A mail from SMTP that is stored a second time in another form, before it is signed: with lines of more than 998
// octets, which receivers need not accept (RFC 5322 §2.1.1), or with part headers that are not UTF-8 (RFC 6532) or have
// white space before a colon (RFC 5322 §4.5). It streams from disk to disk; the first copy is dropped.
import { convert, planConversion, type Source } from "../mail/conversion.ts";
import { maxMessageBytes, MailIntake, MailTooLarge, type IntakeSummary } from "../mail/intake.ts";
import type { PutContent } from "../model/content.ts";
import type { Store } from "../store/store.ts";
import type { Incoming, ReadMail } from "./incoming.ts";

export interface FittedContent {
  content: PutContent;
  headerLength: number;
  summary: IntakeSummary;
}

type Contents = Pick<Store, "putContent" | "dropContent" | "openContent">;

/** Puts a mail on disk as it is to be sent. Throws what `incoming` and `rewrap` throw. */
export async function putMail(
  store: Contents,
  incoming: Incoming,
): Promise<{ mail: ReadMail; fitted: FittedContent }> {
  const content = await store.putContent(incoming.bytes);
  const mail = incoming.result();
  const { summary } = mail;
  const came = { content, headerLength: mail.header.section.length, summary };
  const unfit = summary.longLine || mail.parts.untidy;
  return { mail, fitted: unfit ? await rewrap(store, content, came.headerLength) : came };
}

/** Throws MailSyntaxError (not_convertible, too_deep), MailTooLarge; the content that came is gone in any case. */
async function rewrap(store: Contents, content: PutContent, headerLength: number): Promise<FittedContent> {
  try {
    const source = await sourceOf(store, content, headerLength);
    const plan = await planConversion(source, "lines");
    const look = new MailIntake();
    let length = 0;
    let summary: IntakeSummary | null = null;
    async function* looked(): AsyncGenerator<Buffer> {
      let size = 0;
      for await (const chunk of convert(source, plan)) {
        size += chunk.length;
        if (size > maxMessageBytes) throw new MailTooLarge();
        length = look.push(chunk).section?.length ?? length;
        yield chunk;
      }
      summary = look.end().summary;
    }
    const fitted = await store.putContent(looked());
    if (summary === null) throw new Error("the mail was not stored to its end");
    return { content: fitted, headerLength: length, summary };
  } finally {
    await store.dropContent(content).catch(() => undefined);
  }
}

/** The stored mail, parted behind its header section. */
async function sourceOf(store: Contents, content: PutContent, headerLength: number): Promise<Source> {
  if (content.kind === "inline") {
    const bytes = Buffer.from(content.bytes);
    return {
      section: bytes.subarray(0, headerLength),
      async *body() {
        yield bytes.subarray(headerLength);
      },
    };
  }
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of store.openContent(content)) {
    parts.push(chunk);
    size += chunk.length;
    if (size >= headerLength) break;
  }
  return {
    section: Buffer.concat(parts).subarray(0, headerLength),
    body: () => store.openContent(content, headerLength),
  };
}
