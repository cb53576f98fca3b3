// The inbound listener (port 25): accepts bounces and complaints, and never relays. feedback decides which recipients
// exist and what their mail does. STARTTLS is offered, AUTH is not; any sender is accepted, including the null sender of
// reports (RFC 5321 §4.5.5). DATA gets 250 only when the effect of the mail is on disk. Limits: inbound-limits.ts,
// inbound-pace.ts.
import type { SMTPServerAddress, SMTPServerOptions, SMTPServerSession } from "smtp-server";
import type { Maintenance } from "../maintenance/maintenance.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Feedback } from "../feedback/feedback.ts";
import type { Mailbox } from "../feedback/mailbox.ts";
import type { Log } from "../log.ts";
import type { Store } from "../store/store.ts";
import type { Certificates } from "../tls/certificates.ts";
import { createAnswering } from "./reply-callback.ts";
import { drain } from "./data.ts";
import { mailDataOf, type MailData } from "./mail-data.ts";
import { commonOptions, createListening, tlsOptions } from "./smtp-service.ts";
import type { Listening } from "./smtp-service.ts";
import { peerOf } from "./peer.ts";
import { createInboundLimits, inboundLimits } from "./inbound-limits.ts";
import type { HeldMail, InboundLimits } from "./inbound-limits.ts";
import { createInboundPace, type InboundPace } from "./inbound-pace.ts";
import { createPort } from "./port.ts";
import type { ProgressRule } from "./progress.ts";
import { SmtpReply } from "./replies.ts";
import { createSessionLimiter } from "./session-limiter.ts";
import { RelayServer } from "./smtp-connection.ts";
import type { SessionContext, RelayConnection } from "./smtp-connection.ts";

export interface InboundDeps {
  config: Pick<Config, "hostname" | "inbound">;
  /** null: STARTTLS is not offered. */
  certificates: Certificates | null;
  feedback: Feedback;
  store: Pick<Store, "full">;
  maintenance: Pick<Maintenance, "refusal">;
  clock: Clock;
  log: Log;
}

/** Some servers return all of a message with their report, and ours may have 25 MB. */
export const maxReportBytes = 30_000_000;
/** If all sessions are in use, a new one takes the slot of one that has sent no mail for a while. */
const sessionLimits = {
  ...inboundLimits.sessions,
  unidentified: inboundLimits.sessions.total,
  unidentifiedFirst: inboundLimits.sessions.total,
  grace: { largest: 30_000, any: 60_000 },
};
/** The progress limits of a peer for each mail; 100 recipients and their mail are 104 replies. */
const beforeMail: ProgressRule = {
  ms: 300_000,
  replies: 300,
  tooLate: "4.7.0 No mail within five minutes; connect again when there is one",
  tooMany: "4.7.0 Too many commands without a mail",
  crowded: "4.7.0 Too many sessions; try again later",
};
/** Unknown recipients in one session; a peer with more is guessing addresses. */
const maxRefused = 20;
const mailParameters = new Set(["SIZE", "BODY", "SMTPUTF8"]);

export function createInbound(deps: InboundDeps): Listening {
  const { config, certificates, clock, log } = deps;
  let emptied: (() => void) | null = null;
  const limits = createInboundLimits(clock);
  const shared: SessionContext = {
    clock,
    peerOf: (socket) => socket.remoteAddress ?? "",
    sessions: createSessionLimiter(sessionLimits, clock),
    progress: beforeMail,
    refusal: (ip) => limits.session(ip),
    stopping: false,
    left: () => void (sessions().length === 0 && emptied?.()),
  };
  const server = new RelayServer(
    {
      ...(certificates === null ? withoutTls : { ...certificates.current(), ...tlsOptions }),
      ...sessionOptions(config.hostname),
      ...createHandlers(deps, limits, createInboundPace(clock)),
    },
    shared,
  );
  server.on("error", (error: Error) => log.debug({ err: error }, "a connection failed"));
  const sessions = (): RelayConnection[] => [...server.sessions.values()];
  const ports = config.inbound.listen.map((where) =>
    createPort("inbound", where, (socket) => void server.server.emit("connection", socket)),
  );

  return createListening({
    name: "inbound",
    ports,
    shared,
    clock,
    sessions,
    whenEmpty: (run) => (emptied = run),
    followCertificates: () =>
      certificates?.onChange(() =>
        server.updateSecureContext({ ...certificates.current(), ...tlsOptions }),
      ) ?? null,
  });
}

const withoutTls = { hideSTARTTLS: true };

function sessionOptions(hostname: string): SMTPServerOptions {
  return {
    ...commonOptions(hostname),
    size: maxReportBytes,
    authMethods: [],
    disabledCommands: ["AUTH", "XCLIENT", "XFORWARD", "WIZ", "SHELL", "KILL"],
    maxCommandLength: 4_096,
  };
}

type Handlers = Required<Pick<SMTPServerOptions, "onSecure" | "onMailFrom" | "onRcptTo" | "onData">>;

function createHandlers(
  { feedback, store, maintenance, log }: InboundDeps,
  limits: InboundLimits,
  pace: InboundPace,
): Handlers {
  const mailboxes = new WeakMap<SMTPServerSession, Map<string, Mailbox>>();
  const refused = new WeakMap<SMTPServerSession, number>();

  const mail = async (address: SMTPServerAddress, session: SMTPServerSession): Promise<void> => {
    refuseParameters(address, mailParameters);
    if (maintenance.refusal())
      throw new SmtpReply(451, "4.3.2", "The service is in maintenance mode; try again later");
    if (await store.full()) throw new SmtpReply(452, "4.3.1", "Insufficient storage; try again later");
    limits.message(peerOf(session));
    mailboxes.set(session, new Map());
  };

  const recipient = async (address: SMTPServerAddress, session: SMTPServerSession): Promise<void> => {
    refuseParameters(address, new Set());
    limits.recipient(peerOf(session));
    const mailbox = await feedback.mailboxOf(address.address);
    if (mailbox) return void mailboxes.get(session)?.set(JSON.stringify(mailbox), mailbox);
    const count = (refused.get(session) ?? 0) + 1;
    refused.set(session, count);
    log.debug({ ip: peerOf(session), to: address.address }, "unknown recipient on the inbound port");
    if (count >= maxRefused) throw new SmtpReply(421, "4.7.0", "Too many unknown recipients");
    throw new SmtpReply(550, "5.7.1", "Relaying denied: this server accepts only reports about its own mail");
  };

  const message = async (data: MailData, session: SMTPServerSession): Promise<string> => {
    const peer = peerOf(session);
    const held = limits.hold(peer);
    try {
      await readReport(data, held, (bytes) => pace.read(peer, bytes));
      const boxes = [...(mailboxes.get(session)?.values() ?? [])];
      const { mailFrom } = session.envelope;
      const nullSender = mailFrom !== false && mailFrom.address === "";
      if ((await feedback.take(held.bytes(), boxes, { peer, nullSender })) === "later")
        throw new SmtpReply(451, "4.3.2", "The report cannot be processed at present; try again later");
      return "2.0.0 Taken";
    } finally {
      held.release();
      await drain(data);
    }
  };

  const { answer } = createAnswering(log);

  return {
    onMailFrom: (address, session, callback) =>
      answer(mail(address, session), session, (error) => callback(error)),
    onRcptTo: (address, session, callback) =>
      answer(recipient(address, session), session, (error) => callback(error)),
    onData: (stream, session, callback) =>
      answer(message(mailDataOf(stream), session), session, (error, reply) => callback(error, reply)),
    onSecure: (socket, _session, callback) => {
      socket.on("error", () => undefined);
      callback(null);
    },
  };
}

/** RFC 5321 §4.1.1.11: parameters that were not offered are refused. */
function refuseParameters(address: SMTPServerAddress, known: ReadonlySet<string>): void {
  const unknown = Object.keys(address.args || {}).find((key) => !known.has(key));
  if (unknown !== undefined) throw new SmtpReply(555, "5.5.4", `Parameter ${unknown} is not supported`);
}

/** Keeps the beginning of a mail; the rest is read and thrown away. */
async function readReport(
  data: MailData,
  held: HeldMail,
  read: (bytes: number) => Promise<void> | undefined,
): Promise<void> {
  const tooLarge = new SmtpReply(552, "5.3.4", `A report may have at most ${maxReportBytes} bytes`);
  for (;;) {
    const chunk = await data.take();
    if (data.sizeExceeded) throw tooLarge;
    if (chunk === null) return;
    held.add(chunk);
    await read(chunk.length);
  }
}
