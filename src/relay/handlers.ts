// The handlers of AUTH, MAIL, RCPT and DATA. MAIL decides who sends: the login of the session or, for a peer in
// `relay.trusted`, the account named there; any other peer is refused. Every command gets exactly one reply, and DATA
// gets 250 only after submission has committed the mail.
import type {
  SMTPServerAddress,
  SMTPServerAuthentication,
  SMTPServerOptions,
  SMTPServerSession,
} from "smtp-server";
import type { Access, SmtpLogin } from "../access/access.ts";
import { readSmtpUsername } from "../access/credentials.ts";
import { quotasOf, refuseSpentQuotas } from "../access/quotas.ts";
import { refusePausedAccount } from "../sending-pause/refusals.ts";
import type { Maintenance } from "../maintenance/maintenance.ts";
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import { canonicalAddress, parseAddress } from "../mail/address.ts";
import type { Address } from "../mail/address.ts";
import { operationsAccount, type Account } from "../model/account.ts";
import type { Sender, Submission } from "../submission/submission.ts";
import type { Store } from "../store/store.ts";
import { createAnswering } from "./reply-callback.ts";
import { drain, readData } from "./data.ts";
import { mailDataOf, type MailData } from "./mail-data.ts";
import { arrivalOf, peerOf } from "./peer.ts";
import { SmtpReply } from "./replies.ts";
import type { SessionLimiter } from "./session-limiter.ts";
import type { SessionContext, RelayConnection } from "./smtp-connection.ts";

export interface HandlerDeps {
  access: Pick<Access, "authenticateSmtp" | "renewSmtp">;
  submission: Pick<Submission, "refuseRecipient" | "relay">;
  store: Pick<Store, "accountByName" | "full" | "listAccounts" | "spentQuota">;
  clock: Clock;
  log: Log;
  shared: Pick<SessionContext, "stopping">;
  maintenance: Pick<Maintenance, "refusal">;
  /** The account's sessions, and how many it may have beside other accounts. */
  shareOf: SessionLimiter["shareOf"];
  connectionOf(session: SMTPServerSession): Pick<RelayConnection, "loggedIn" | "trustedAccount"> | undefined;
}

type Handlers = Required<
  Pick<SMTPServerOptions, "onAuth" | "onSecure" | "onMailFrom" | "onRcptTo" | "onData">
>;

/** MAIL parameters of what EHLO offers; anything else is 555 (RFC 5321 §4.1.1.11). AUTH: RFC 4954 §5, not used. */
const mailParameters = new Set(["SIZE", "BODY", "SMTPUTF8", "AUTH"]);
const apiKey = /^svc_(?:live|test)_/;
/** Senders that are addresses though no mail goes there: one label, or an address literal (RFC 5321 §4.1.3). */
const localSender =
  /^[\w!#$%&'*+\-/=?^`{|}~.]{1,64}@(?:[a-z0-9-]{1,63}|\[[0-9a-f.:]{2,45}\]|\[ipv6:[0-9a-f.:]{2,45}\])$/i;

export function createHandlers(deps: HandlerDeps): Handlers {
  const { access, submission, store, clock, log, shared } = deps;
  const senders = new WeakMap<SMTPServerSession, Sender>();

  /** The reply for an exception; an unexpected one is logged with the session's id. */
  const { explain, answer } = createAnswering(log);

  const login = async (auth: SMTPServerAuthentication, session: SMTPServerSession): Promise<SmtpLogin> => {
    if (session.envelope.mailFrom)
      throw new SmtpReply(503, "5.5.1", "AUTH is not allowed during a mail transaction");
    const user = await authenticated(auth, session);
    await refuseOverShare(user.account);
    deps.connectionOf(session)?.loggedIn(user.account.key);
    return user;
  };

  /** If there are several accounts, one account may not take all sessions. */
  const refuseOverShare = async (account: Account): Promise<void> => {
    const { open, share } = deps.shareOf(account.key);
    if (open < share) return;
    // Every server has the account of its own notices, which never logs in.
    const { rows } = await store.listAccounts({ limit: 3, cursor: null });
    if (rows.filter(({ name }) => name !== operationsAccount).length < 2) return;
    log.info(
      { account: account.name, open, share },
      "SMTP login refused: the account is at its share of the session limit",
    );
    throw new SmtpReply(
      421,
      "4.7.0",
      `The account has ${open} open sessions, its share of the limit; close some, or try again later`,
    );
  };

  const authenticated = async (
    auth: SMTPServerAuthentication,
    session: SMTPServerSession,
  ): Promise<SmtpLogin> => {
    refuseOtherIdentity(auth);
    const password = auth.password ?? "";
    try {
      return await access.authenticateSmtp(auth.username ?? "", password, peerOf(session));
    } catch (error) {
      log.info(
        { ip: peerOf(session), reason: error instanceof Refusal ? error.code : "trouble" },
        "SMTP login refused",
      );
      if (!(error instanceof Refusal)) throw new SmtpReply(454, "4.7.0", explain(error, session).sentence);
      if (error.code !== "invalid_api_key") throw error;
      if (apiKey.test(password))
        throw new SmtpReply(
          535,
          "5.7.8",
          "This password is an API key; create an SMTP login: svc smtp-credentials create",
        );
      if (!readSmtpUsername(auth.username ?? ""))
        throw new SmtpReply(
          535,
          "5.7.8",
          "Not a user name of this server: these begin with smtp_; see svc smtp-credentials list",
        );
      throw error;
    }
  };

  /** A password that was revoked, or an account that was suspended, ends the login of an open session. */
  const renewed = async (user: SmtpLogin, session: SMTPServerSession): Promise<SmtpLogin> => {
    try {
      return await access.renewSmtp(user);
    } catch (error) {
      if (error instanceof Refusal) session.user = false;
      throw error;
    }
  };

  const senderOf = async (session: SMTPServerSession): Promise<Sender> => {
    const user = loginOf(session);
    if (user) {
      const { account, test } = await renewed(user, session);
      return { account, test, apiKey: null, quotas: quotasOf(account, null) };
    }
    const name = deps.connectionOf(session)?.trustedAccount ?? null;
    if (name === null)
      throw new SmtpReply(
        530,
        "5.7.0",
        session.secure
          ? "Authentication required: log in with AUTH PLAIN or AUTH LOGIN"
          : "Authentication required: send STARTTLS, then AUTH",
      );
    const account = await store.accountByName(name);
    if (!account) {
      log.warn({ account: name }, "relay.trusted names an account that does not exist");
      throw new SmtpReply(
        451,
        "4.3.5",
        "The account of this network does not exist; report it to the operator",
      );
    }
    if (account.status !== "active")
      throw new Refusal("key_disabled", "The account of this network is suspended");
    return { account, test: false, apiKey: null, quotas: quotasOf(account, null) };
  };

  const mail = async (address: SMTPServerAddress, session: SMTPServerSession): Promise<void> => {
    const closed = deps.maintenance.refusal();
    if (closed) throw closed;
    const sender = await senderOf(session);
    refusePausedAccount(sender.account);
    const unknown = Object.keys(address.args || {}).find((key) => !mailParameters.has(key));
    if (unknown !== undefined) throw new SmtpReply(555, "5.5.4", `Parameter ${unknown} is not supported`);
    const parsed = parseAddress(address.address);
    if (address.address !== "" && !parsed.ok && !localSender.test(address.address))
      throw new SmtpReply(553, "5.1.7", `The sender ${parsed.issue}`);
    requireSmtpUtf8(address.address, wantsSmtpUtf8(address));
    if (sender.quotas.length > 0) await refuseSpentQuotas(store, sender.quotas, clock.now());
    if (await store.full())
      throw new SmtpReply(452, "4.3.1", "Insufficient storage for more mail; try again later");
    senders.set(session, sender);
  };

  const recipient = async (address: SMTPServerAddress, session: SMTPServerSession): Promise<void> => {
    const [unknown] = Object.keys(address.args || {});
    if (unknown !== undefined) throw new SmtpReply(555, "5.5.4", `Parameter ${unknown} is not supported`);
    const parsed = parseAddress(address.address);
    if (!parsed.ok) throw new SmtpReply(553, "5.1.3", `The address ${parsed.issue}`);
    requireSmtpUtf8(address.address, wantsSmtpUtf8(session.envelope.mailFrom));
    const refusal = await submission.refuseRecipient(known(senders.get(session)), parsed.value);
    if (refusal) throw refusal;
  };

  const message = async (data: MailData, session: SMTPServerSession): Promise<string> => {
    const { mailFrom, rcptTo } = session.envelope;
    const envelope = {
      mailFrom: mailFrom ? mailFrom.address : "",
      rcptTo: distinct(rcptTo.map((one) => one.address)),
      smtpUtf8: wantsSmtpUtf8(mailFrom),
    };
    try {
      const { id } = await submission.relay(
        known(senders.get(session)),
        envelope,
        readData(data, shared),
        arrivalOf(session, envelope.smtpUtf8),
      );
      return `2.0.0 queued as ${id}`;
    } finally {
      await drain(data);
    }
  };

  return {
    onAuth: (auth, session, callback) =>
      answer(login(auth, session), session, (error, user) => callback(error, user && { user })),
    onMailFrom: (address, session, callback) =>
      answer(mail(address, session), session, (error) => callback(error)),
    onRcptTo: (address, session, callback) =>
      answer(recipient(address, session), session, (error) => callback(error)),
    onData: (stream, session, callback) =>
      answer(message(mailDataOf(stream), session), session, (error, reply) => callback(error, reply)),
    onSecure: (socket, _session, callback) => {
      // Upstream listens for one error of a TLS socket; a reset can bring a second.
      socket.on("error", () => undefined);
      callback(null);
    },
  };
}

function loginOf(session: SMTPServerSession): SmtpLogin | null {
  const user: SmtpLogin | false | undefined = session.user;
  return user || null;
}

function wantsSmtpUtf8(mailFrom: SMTPServerAddress | false): boolean {
  return Boolean(mailFrom && mailFrom.args && mailFrom.args.SMTPUTF8 === true);
}

/** RFC 6531 §3.4: an address that is not ASCII only where MAIL asked for SMTPUTF8. */
function requireSmtpUtf8(address: string, asked: boolean): void {
  if (!asked && /[^\x20-\x7e]/.test(address))
    throw new SmtpReply(553, "5.6.7", "A non-ASCII address requires SMTPUTF8 in MAIL");
}

/** Each mailbox once, under its first spelling. */
function distinct(addresses: string[]): Address[] {
  const found = new Map<string, Address>();
  for (const text of addresses) {
    const parsed = parseAddress(text);
    if (!parsed.ok) throw new Error(`an accepted recipient ${parsed.issue}`);
    const key = canonicalAddress(parsed.value);
    if (!found.has(key)) found.set(key, parsed.value);
  }
  return [...found.values()];
}

/**
 * AUTH PLAIN (RFC 4616 §2): who logs in is the authentication identity, which upstream takes from the authorization
 * identity where it is empty; the other may be left out or name the same, since no login may act for another.
 */
function refuseOtherIdentity({ method, authcid, authzid }: SMTPServerAuthentication): void {
  if (method !== "PLAIN") return;
  if ((authcid ?? "") === "")
    throw new SmtpReply(
      501,
      "5.5.2",
      "The login has no user name: AUTH PLAIN sends NUL, user name, NUL, password",
    );
  if ((authzid ?? "") !== "" && authzid !== authcid)
    throw new SmtpReply(
      535,
      "5.7.8",
      "A login cannot act for another user: leave the authorization identity empty",
    );
}

/** RCPT and DATA come after an accepted MAIL: smtp-server enforces that order. */
function known(sender: Sender | undefined): Sender {
  if (!sender) throw new Error("a transaction without a sender");
  return sender;
}
