// Sends mail to the operator (operations.email): at most one a cause and hour, and every one is logged. What each mail
// says stands in the files beside this one. Reports to others, signed, are sent the same way. A notice is a message of the account `operations`, which has no webhooks, so
// that a notice which cannot be delivered causes no further one. It is sent from operations.from and signed where that
// domain is a verified one of the default account, else from postmaster of this host, unsigned.
import { hourMs, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Domains } from "../domains/domains.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import { parseAddress, type Address } from "../mail/address.ts";
import { composeMessage } from "../mail/compose.ts";
import type { SignHeader } from "../mail/dkim.ts";
import type { MessageTokens } from "../mail/message-token.ts";
import { defaultAccount, operationsAccount, type Account } from "../model/account.ts";
import type { SenderDomain } from "../model/domain.ts";
import { defaultPool } from "../model/ip-pool.ts";
import type { Store } from "../store/store.ts";
import { accept, type AcceptDeps } from "../submission/accept.ts";

export interface Notices {
  /** `cause` identifies what is sent once an hour at most, e.g. `dead_letter:whk_…`. Never throws; false: the mail could not be queued. */
  notify(cause: string, subject: string, text: string): Promise<boolean>;
  /** Never throws; false: the mail could not be signed, or not be queued. */
  report(to: Address, report: Report): Promise<boolean>;
}

/** A mail for a program to read (RFC 6522). */
export interface Report {
  subject: string;
  text: string;
  headers: [string, string][];
  reportType: string;
  file: { filename: string; contentType: string; bytes: Buffer };
}

export interface NoticesDeps {
  store: AcceptDeps["store"] & Pick<Store, "accountByName">;
  runner: AcceptDeps["runner"];
  config: AcceptDeps["config"] &
    Pick<Config, "operations" | "hostname"> & { outbound: Pick<Config["outbound"], "sign"> };
  domains: Pick<Domains, "senderFor">;
  signHeader: SignHeader;
  clock: Clock;
  tokens: Pick<MessageTokens, "of">;
  mint: IdMint;
  log: Log;
}

interface Author {
  from: Address;
  /** null: the mail is not signed. */
  domain: SenderDomain | null;
}

type Mail = Pick<Report, "subject" | "text"> & Partial<Report>;

const quietMs = hourMs;
const causesKept = 1000;

export function createNotices(deps: NoticesDeps): Notices {
  const { clock, config, log, mint } = deps;
  const notifiedAt = new Map<string, number>();

  const recently = (cause: string): boolean => {
    const now = clock.monotonic();
    const last = notifiedAt.get(cause);
    if (last !== undefined && now - last < quietMs) return true;
    notifiedAt.delete(cause);
    for (const oldest of notifiedAt.keys()) {
      if (notifiedAt.size < causesKept) break;
      notifiedAt.delete(oldest);
    }
    notifiedAt.set(cause, now);
    return false;
  };

  const accountOf = async (name: string): Promise<Account> => {
    const account = await deps.store.accountByName(name);
    if (!account) throw new Error(`the account ${name} is missing from the database`);
    return account;
  };

  const send = async (to: Address, { from, domain }: Author, mail: Mail): Promise<void> => {
    const account = await accountOf(operationsAccount);
    const { subject, text, file, headers = [], reportType } = mail;
    const now = clock.now();
    const id = mint("msg", now);
    const messageId = `<${deps.tokens.of(id)}@${config.hostname}>`;
    const composed = composeMessage({
      from: { name: `svc on ${config.hostname}`, address: from },
      replyTo: [],
      to: [{ name: null, address: to }],
      cc: [],
      subject,
      text: text.replace(/\r\n|\r|\n/g, "\r\n"),
      html: null,
      headers: [["Auto-Submitted", "auto-generated"], ...headers],
      attachments: file ? [{ ...file, contentId: null, disposition: "attachment" }] : [],
      ...(reportType === undefined ? {} : { reportType }),
      messageId,
      date: now,
      boundarySeed: id,
    });
    const bytes = Buffer.concat(composed.chunks);
    const signature = await sign(domain, bytes.subarray(0, composed.headerLength), composed.bodyHash, now);
    await accept(deps, {
      message: {
        id,
        accountKey: account.key,
        test: false,
        from: from.email,
        fromName: null,
        // Signed here, since the domain belongs to another account.
        signingDomain: null,
        returnPathDomain: config.hostname,
        subject,
        tagsJson: "[]",
        metadataJson: "{}",
        messageIdHeader: messageId,
        ipPool: defaultPool,
        headerLength: composed.headerLength + signature.length,
        bodyHash: composed.bodyHash,
        eightBit: composed.smtpUtf8,
        tracking: null,
        smtpUtf8: composed.smtpUtf8,
        queuedAt: now,
        source: "api",
        apiKey: null,
      },
      content: { kind: "inline", bytes: Buffer.concat([signature, bytes]) },
      recipients: [{ type: "to", address: to }],
      createdAt: now,
      sendAt: null,
      idempotency: null,
      quotas: [],
      share: null,
    });
  };

  const author = async (): Promise<Author> => {
    const wanted = config.operations.from === null ? null : parseAddress(config.operations.from);
    const domain = wanted?.ok ? await verifiedDomain(wanted.value.ascii) : null;
    if (wanted?.ok && domain) return { from: wanted.value, domain };
    const fallback = parseAddress(`postmaster@${config.hostname}`);
    if (!fallback.ok) throw new Error(`hostname makes no address: ${fallback.issue}`);
    return { from: fallback.value, domain: null };
  };

  const verifiedDomain = async (name: string): Promise<SenderDomain | null> => {
    const { key } = await accountOf(defaultAccount);
    const found = await deps.domains.senderFor(key, name);
    return found.ok ? found.domain : null;
  };

  const sign = async (
    domain: SenderDomain | null,
    headerSection: Buffer,
    bodyHash: Buffer,
    now: number,
  ): Promise<Buffer> => {
    const keys = (domain?.dkimKeys ?? []).filter((key) => key.status === "active");
    if (!domain || keys.length === 0 || !config.outbound.sign) return Buffer.alloc(0);
    const signing = keys.map(({ selector, algorithm, privatePem }) => ({
      domain: domain.name,
      selector,
      algorithm,
      privatePem,
    }));
    return deps.signHeader({ headerSection, bodyHash, keys: signing, signedAt: now });
  };

  return {
    async notify(cause, subject, text) {
      log.warn({ cause, subject }, "notice to the operator");
      const to = config.operations.email === null ? null : parseAddress(config.operations.email);
      if (!to?.ok || recently(cause)) return true;
      try {
        await send(to.value, await author(), { subject: `[svc] ${subject}`, text });
        return true;
      } catch (error) {
        notifiedAt.delete(cause);
        log.error({ cause, err: error }, "the notice could not be queued");
        return false;
      }
    },
    async report(to, report) {
      try {
        const from = await author();
        if (from.domain === null || !config.outbound.sign) return false;
        await send(to, from, report);
        return true;
      } catch (error) {
        log.error({ to: to.email, err: error }, "the report could not be queued");
        return false;
      }
    },
  };
}
