// The relay on loopback with a fake access, submission and store, for the tests of its sessions.
import { readFileSync } from "node:fs";
import type { SmtpLogin } from "../../src/access/access.ts";
import type { Config } from "../../src/config.ts";
import { Refusal } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import type { Log, LogFields } from "../../src/log.ts";
import type { Address } from "../../src/mail/address.ts";
import type { Account } from "../../src/model/account.ts";
import { createRelay } from "../../src/relay/relay.ts";
import type { Listening } from "../../src/relay/smtp-service.ts";
import type { Arrival, Sender, Submission } from "../../src/submission/submission.ts";
import { newAccount } from "./account.ts";
import { ManualClock } from "./clock.ts";
import { connectSmtp } from "./smtp-client.ts";
import type { SmtpClient } from "./smtp-client.ts";

const pem = (name: string): string =>
  readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), "utf8");
export const certificate = { key: pem("mail.test.key"), cert: pem("mail.test.cert") };
export const renewedCertificate = { key: pem("renewed.test.key"), cert: pem("renewed.test.cert") };

export const account = newAccount();
/** The login that the fake access takes. */
export const login = { username: "smtp_01jdkq4y8z0000000000000001", password: "correct horse" };
export const plainToken = Buffer.from(`\0${login.username}\0${login.password}`).toString("base64");

export interface Received {
  sender: Sender;
  mailFrom: string;
  rcptTo: Address[];
  smtpUtf8: boolean;
  data: Buffer;
  arrival: Arrival;
}

export interface RelayHarness {
  relay: Listening;
  clock: ManualClock;
  /** Mails that submission took, in order. */
  mails: Received[];
  /** Lines of the log, as `level: text {fields}`. */
  logged: string[];
  ports: { starttls: number; tls: number };
  /** Set to change what the fakes do. */
  on: {
    authenticate: (username: string, password: string) => Promise<SmtpLogin>;
    renew: (login: SmtpLogin) => Promise<SmtpLogin>;
    recipient: (address: Address) => Promise<Refusal | null>;
    /** Before the data is read. */
    begin: () => Promise<void>;
    /** After it was read in full; the mail counts when this resolves. */
    commit: (mail: Received) => Promise<void>;
    full: boolean;
    /** What maintenance refuses with. */
    closed: Refusal | null;
    accounts: Account[];
  };
  setCertificate(pair: { key: string; cert: string }): void;
  /** Connected, its banner read. */
  client(options?: { localAddress?: string }): Promise<SmtpClient>;
  /** Connected to the implicit-TLS port, greeted. */
  tlsClient(): Promise<SmtpClient>;
  /** The same, logged in. */
  loggedIn(): Promise<SmtpClient>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `submission`: takes the mail in place of the fake. */
export async function startRelay(
  relayConfig: Partial<Config["relay"]> = {},
  submission: Pick<Submission, "refuseRecipient" | "relay"> | null = null,
): Promise<RelayHarness> {
  const clock = new ManualClock();
  const mails: Received[] = [];
  const logged: string[] = [];
  const at = (level: string) => (fields: LogFields, text: string) =>
    void logged.push(`${level}: ${text} ${JSON.stringify(fields)}`);
  const log: Log = {
    ...silentLog,
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    component: () => log,
  };
  let pair = certificate;
  let changed: (() => void) | null = null;
  const on: RelayHarness["on"] = {
    authenticate: async (username, password) => {
      if (username !== login.username || password !== login.password)
        throw new Refusal("invalid_api_key", "Bad username or password");
      return { account, test: false, passwordHash: new Uint8Array(32) };
    },
    renew: async (login) => login,
    recipient: async () => null,
    begin: async () => undefined,
    commit: async () => undefined,
    full: false,
    closed: null,
    accounts: [account],
  };
  const relay = createRelay({
    config: {
      hostname: "mail.test",
      relay: {
        starttls: [{ host: "127.0.0.1", port: 0 }],
        implicitTls: [{ host: "127.0.0.1", port: 0 }],
        maxConnections: 2000,
        maxConnectionsPerIp: 1500,
        trusted: [],
        trustedProxies: [],
        ...relayConfig,
      },
    },
    certificates: {
      current: () => pair,
      covers: () => true,
      onChange: (listener) => {
        changed = listener;
        return () => (changed = null);
      },
      reload: async () => null,
    },
    access: {
      authenticateSmtp: (username, password) => on.authenticate(username, password),
      renewSmtp: (session) => on.renew(session),
    },
    submission: submission ?? {
      refuseRecipient: (_sender, address) => on.recipient(address),
      relay: async (sender, envelope, data, arrival) => {
        await on.begin();
        const chunks: Buffer[] = [];
        for await (const chunk of data) chunks.push(chunk);
        const mail = { sender, ...envelope, data: Buffer.concat(chunks), arrival };
        await on.commit(mail);
        mails.push(mail);
        return { id: `msg_${mails.length}` };
      },
    },
    store: {
      accountByName: async (name) => on.accounts.find((one) => one.name === name) ?? null,
      full: async () => on.full,
      listAccounts: async ({ limit }) => ({
        rows: on.accounts.slice(0, limit),
        next: null,
        hasMore: on.accounts.length > limit,
      }),
      spentQuota: async (quotas) => quotas.find(({ limit }) => mails.length >= limit) ?? null,
    },
    maintenance: { refusal: () => on.closed },
    clock,
    log,
  });
  await relay.start();
  const port = (name: string): number =>
    Number(
      relay
        .addresses()
        .find((one) => one.name === name)
        ?.address.split(":")
        .at(-1) ?? 0,
    );
  const ports = { starttls: port("smtp"), tls: port("smtps") };
  let stopped: Promise<void> | null = null;
  const greeted = async (client: SmtpClient): Promise<SmtpClient> => {
    await client.answer();
    return client;
  };
  const harness: RelayHarness = {
    relay: { ...relay, stop: () => (stopped ??= relay.stop()) },
    clock,
    mails,
    logged,
    ports,
    on,
    setCertificate(next) {
      pair = next;
      changed?.();
    },
    client: async (options = {}) => greeted(await connectSmtp({ port: ports.starttls, ...options })),
    async tlsClient() {
      const client = await greeted(await connectSmtp({ port: ports.tls, tls: true }));
      await client.command("EHLO client.test");
      return client;
    },
    async loggedIn() {
      const client = await harness.tlsClient();
      const answer = await client.command(`AUTH PLAIN ${plainToken}`);
      if (answer.code !== 235) throw new Error(answer.text);
      return client;
    },
    async [Symbol.asyncDispose]() {
      const stopping = harness.relay.stop();
      await clock.advance(12_000);
      await stopping;
    },
  };
  return harness;
}
