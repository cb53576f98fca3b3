// Processes bounce messages, complaints, unsubscribes and mail to the operator that arrive on port 25: which addresses exist, and what
// a mail to each does. A signed return path names the message and the recipient whose bounces it receives; a report
// never affects any other recipient. Parsing is done in a thread (MailReaders), since any host may send a mail that is
// expensive to parse. No mail is ever answered.
import type { ReactingRecipient } from "../model/reaction.ts";
import { parseAddress } from "../mail/address.ts";
import { createMac } from "../mail/mac.ts";
import type { Returned } from "../mail/returned.ts";
import { readReturnPathLocal, readUnsubscribeLocal, type RecipientKeys } from "../mail/return-path.ts";
import { bounceReports, namedFailures } from "./bounces.ts";
import { complaintReports } from "./complaints.ts";
import { createLoops, type Standing } from "./loops.ts";
import type { FeedbackDeps, Mailbox } from "./mailbox.ts";
import { createForwarding } from "./forwarding.ts";

export interface Feedback {
  /** The mailbox behind an address (as written in RCPT TO); null: there is none. */
  mailboxOf(address: string): Promise<Mailbox | null>;
  /**
   * Does what a mail says, once a mailbox. Resolves when it is on disk; `later`: not now, it is to be sent again.
   */
  take(mail: Uint8Array, mailboxes: readonly Mailbox[], arrival: Arrival): Promise<"taken" | "later">;
}

/** How a mail came. */
export interface Arrival {
  /** The address of the host that sent it. */
  peer: string;
  /** MAIL FROM:<> (RFC 5321 §4.5.5): nothing that is sent back can follow, which is how bounces are sent. */
  nullSender: boolean;
}

const operatorNames = new Set(["postmaster", "abuse"]);
const unsubscribeForm = /^u\+/;
/** `fbl`, or `fbl+yahoo`: the name of the feedback loop that was given this address. */
const complaintsLocal = /^fbl(?:\+([a-z0-9][a-z0-9_-]{0,31}))?$/;

export function createFeedback(deps: FeedbackDeps): Feedback {
  const { store, config, log } = deps;
  const forwarding = createForwarding(deps);
  const loops = createLoops({ ...deps, domains: config.feedback.loops });
  const verpMac = createMac(deps.verpSecret);
  const known = { ...deps, verpMac };

  const returnPath = async (local: string, domain: string): Promise<Mailbox | null> => {
    const keys = readReturnPathLocal(verpMac, local);
    if (keys === null) return null;
    const sent = await store.sentMessage({ key: keys.messageKey });
    const recipient = sent?.find(({ job }) => job.key === keys.recipientKey);
    // Mail of test keys never leaves the machine: nothing can come back.
    if (!recipient || recipient.job.message.test) return null;
    return recipient.job.message.returnPathDomain === domain ? { kind: "return_path", ...keys } : null;
  };

  const unsubscribeAddress = async (local: string): Promise<Mailbox | null> => {
    const keys = readUnsubscribeLocal(verpMac, local);
    const found = keys && (await recipientOf(keys));
    return found && !found.job.message.test ? { kind: "unsubscribe", ...keys } : null;
  };

  const recipientOf = ({ messageKey, recipientKey }: RecipientKeys): Promise<ReactingRecipient | null> =>
    store.reactingRecipient({ key: messageKey }, recipientKey);

  /** Who knows the address acts for its recipient; what no person or program of one sends does nothing. */
  const unsubscribe = async (keys: RecipientKeys, nullSender: boolean): Promise<void> => {
    const found = nullSender ? null : await recipientOf(keys);
    if (found) await deps.unsubscribes.ofRecipient(found, "mailto");
  };

  /** What a mail says at one of its mailboxes. What all of them need is made once. */
  const reportsOf = (returned: Returned, peer: string) => {
    if (returned.kind === "bounce") {
      const failures = namedFailures(returned.failures, verpMac);
      return async (mailbox: Mailbox) =>
        mailbox.kind === "return_path" ? bounceReports(deps, failures, mailbox) : [];
    }
    if (returned.kind === "nothing") return async () => [];
    let standing: Promise<Standing> | null = null;
    const standingOfSender = () => (standing ??= loops.standingOf(returned.sender, peer));
    return async (mailbox: Mailbox) =>
      mailbox.kind === "operator" || mailbox.kind === "unsubscribe"
        ? []
        : complaintReports({ ...known, standingOfSender }, returned, mailbox);
  };

  /** null: it could not be read now. */
  const read = async (
    mail: Uint8Array,
    mailboxes: readonly Mailbox[],
    nullSender: boolean,
  ): Promise<Returned | null> => {
    try {
      const paths = mailboxes.filter((one) => one.kind === "return_path");
      const sent = await Promise.all(paths.map(({ messageKey }) => store.sentMessage({ key: messageKey })));
      const subjects = sent.flatMap((recipients) => recipients?.[0]?.job.message.subject ?? []);
      return await deps.readReturned(mail, { nullSender, ownReturnPath: paths.length > 0, subjects });
    } catch (error) {
      log.warn({ err: error }, "a report could not be parsed now; its sender was answered 451");
      return null;
    }
  };

  return {
    async mailboxOf(address) {
      // RFC 5321 §4.5.1: the one address that needs no domain.
      const parsed = parseAddress(/^postmaster$/i.test(address) ? `${address}@${config.hostname}` : address);
      if (!parsed.ok) return null;
      const local = parsed.value.local.toLowerCase();
      const domain = parsed.value.ascii;
      if (domain === config.hostname.toLowerCase()) {
        const complaints = complaintsLocal.exec(local);
        if (complaints) return { kind: "complaints", source: complaints[1] ?? null };
        if (unsubscribeForm.test(local)) return unsubscribeAddress(local);
        if (operatorNames.has(local) && forwarding.open) return { kind: "operator", name: local };
      }
      return returnPath(local, domain);
    },
    async take(mail, mailboxes, { peer, nullSender }) {
      let later = false;
      const returned = mailboxes.some(({ kind }) => kind !== "operator" && kind !== "unsubscribe")
        ? await read(mail, mailboxes, nullSender)
        : null;
      const reportsAt = returned === null ? null : reportsOf(returned, peer);
      for (const mailbox of mailboxes) {
        if (mailbox.kind === "operator") {
          if (!(await forwarding.forward(mailbox.name, mail))) later = true;
          continue;
        }
        if (mailbox.kind === "unsubscribe") {
          await unsubscribe(mailbox, nullSender);
          continue;
        }
        const reports = (await reportsAt?.(mailbox)) ?? "later";
        if (returned === null || reports === "later") {
          later = true;
          continue;
        }
        const results = reports.length > 0 ? await store.settleReports(reports) : [];
        if (results.includes("busy")) later = true;
        log.info(
          {
            mailbox,
            kind: returned.kind,
            why: returned.kind === "nothing" ? returned.why : undefined,
            results,
          },
          "mail that came back",
        );
      }
      return later ? "later" : "taken";
    },
  };
}
