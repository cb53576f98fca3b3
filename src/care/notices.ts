// Mail to the operator about the appliance itself: dead letters, domains that fail. At
// most one a cause and hour. A notice is a message of the account `operations`, which has no webhooks, so that a notice
// which cannot be delivered raises no further one.
import { hourMs, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { IdMint } from "../ids.ts";
import type { Log } from "../log.ts";
import { parseAddress, type Address } from "../mail/address.ts";
import { composeMessage } from "../mail/compose.ts";
import type { SignHeader } from "../mail/dkim.ts";
import type { MessageTokens } from "../mail/message-token.ts";
import { operationsAccount } from "../model/account.ts";
import type { SenderDomain } from "../model/domain.ts";
import { defaultPool } from "../pools/pools.ts";
import { accept, type AcceptDeps } from "../submission/accept.ts";

import type { Store } from "../store/store.ts";

export interface Notices {
  /** `cause` names what must not be told twice within the hour, e.g. `dead_letter`. Never throws; false: it could not be queued. */
  notify(cause: string, subject: string, text: string): Promise<boolean>;
}

export interface NoticesDeps {
  store: AcceptDeps["store"] & Pick<Store, "accountByName">;
  runner: AcceptDeps["runner"];
  config: AcceptDeps["config"] &
    Pick<Config, "operations" | "hostname"> & { outbound: Pick<Config["outbound"], "sign"> };
  /** The verified domain of an address in any account, which then signs. */
  verifiedDomain(name: string): Promise<SenderDomain | null>;
  signHeader: SignHeader;
  clock: Clock;
  tokens: Pick<MessageTokens, "of">;
  mint: IdMint;
  log: Log;
}

const quietMs = hourMs;
const causesKept = 1000;

export function createNotices(deps: NoticesDeps): Notices {
  const { clock, config, log, mint } = deps;
  const toldAt = new Map<string, number>();

  const recently = (cause: string): boolean => {
    const now = clock.monotonic();
    const last = toldAt.get(cause);
    if (last !== undefined && now - last < quietMs) return true;
    toldAt.delete(cause);
    for (const oldest of toldAt.keys()) {
      if (toldAt.size < causesKept) break;
      toldAt.delete(oldest);
    }
    toldAt.set(cause, now);
    return false;
  };

  const send = async (to: Address, subject: string, text: string): Promise<void> => {
    const account = await deps.store.accountByName(operationsAccount);
    if (!account) throw new Error(`the account ${operationsAccount} is missing`);
    const { from, domain } = await author();
    const now = clock.now();
    const id = mint("msg", now);
    const messageId = `<${deps.tokens.of(id)}@${config.hostname}>`;
    const composed = composeMessage({
      from: { name: `svc on ${config.hostname}`, address: from },
      replyTo: [],
      to: [{ name: null, address: to }],
      cc: [],
      subject: `[svc] ${subject}`,
      text: text.replace(/\r\n|\r|\n/g, "\r\n"),
      html: null,
      headers: [["Auto-Submitted", "auto-generated"]],
      attachments: [],
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
        // Signed here and now, since the domain belongs to another account.
        signingDomain: null,
        returnPathDomain: config.hostname,
        subject: `[svc] ${subject}`,
        tagsJson: "[]",
        metadataJson: "{}",
        messageIdHeader: messageId,
        ipPool: defaultPool,
        headerLength: composed.headerLength + signature.length,
        bodyHash: composed.bodyHash,
        eightBit: composed.smtpUtf8,
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

  /** operations.from where its domain is verified, else postmaster of this host, unsigned. */
  const author = async (): Promise<{ from: Address; domain: SenderDomain | null }> => {
    const wanted = config.operations.from === null ? null : parseAddress(config.operations.from);
    const domain = wanted?.ok ? await deps.verifiedDomain(wanted.value.ascii) : null;
    if (wanted?.ok && domain) return { from: wanted.value, domain };
    const fallback = parseAddress(`postmaster@${config.hostname}`);
    if (!fallback.ok) throw new Error(`hostname makes no address: ${fallback.issue}`);
    return { from: fallback.value, domain: null };
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
        await send(to.value, subject, text);
        return true;
      } catch (error) {
        toldAt.delete(cause);
        log.error({ cause, err: error }, "the notice could not be queued");
        return false;
      }
    },
  };
}
