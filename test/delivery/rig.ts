// What the tests of delivery share: a resolver that is a map of records, short timeouts, and an attempt in one call.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../src/clock.ts";
import type { OutboundConfig } from "../../src/config.ts";
import type { AttemptRequest, Delivery, Route } from "../../src/delivery/delivery.ts";
import { createDelivery } from "../../src/delivery/smtp-delivery.ts";
import type { DeliveryDeps } from "../../src/delivery/smtp-delivery.ts";
import type { DnsAnswer, MxRecord, Resolver } from "../../src/dns/resolver.ts";
import type { TlsaRecord } from "../../src/dns/tlsa.ts";
import { silentLog } from "../../src/log.ts";
import { createTrust } from "../../src/delivery/trust.ts";
import type { Outcome } from "../../src/mail/outcome.ts";
import type { Job } from "../../src/model/queued-recipient.ts";
import type { Source } from "../../src/pools/sources.ts";
import { idleClock } from "../support/idle-clock.ts";
import { makeJob, makeMessage } from "../support/jobs.ts";

interface ZoneEntry {
  mx?: string[];
  a?: string[];
  aaaa?: string[];
  /** `3 1 1 <hex>` at port 25 or another. */
  tlsa?: string[];
  /** The look-up of its TLSA records fails. */
  tlsaFails?: boolean;
  /** Its answers have the AD bit. */
  secure?: boolean;
  canonical?: string;
  /** What is answered about its alias itself has the AD bit. */
  aliasSecure?: boolean;
  aliasFails?: boolean;
  /** What is answered about its TLSA records has the AD bit, whatever the rest has. */
  tlsaSecure?: boolean;
}

/** `{ "x.test": { mx: ["10 mx.x.test"] }, "mx.x.test": { a: ["127.0.0.1"] } }`; "servfail" fails every question. */
export type Zone = Record<string, ZoneEntry | "servfail">;

export function zoneResolver(zone: Zone): Resolver {
  const find = <T>(name: string, read: (entry: ZoneEntry) => T[]) => {
    const entry = zone[name];
    const answer = (): DnsAnswer<T> => {
      if (entry === undefined) return { kind: "nxdomain" };
      if (entry === "servfail") return { kind: "failed", why: "SERVFAIL" };
      const records = read(entry);
      return records.length === 0
        ? { kind: "nodata" }
        : {
            kind: "found",
            records,
            ttlSeconds: 0,
            authenticated: entry.secure === true,
            ...(entry.canonical === undefined ? {} : { canonical: entry.canonical }),
          };
    };
    return Promise.resolve(answer());
  };
  const alias = (name: string): Promise<DnsAnswer<string>> => {
    const entry = zone[name];
    if (typeof entry !== "object" || entry.canonical === undefined) return none();
    if (entry.aliasFails) return Promise.resolve({ kind: "failed", why: "SERVFAIL" });
    const authenticated = entry.aliasSecure === true;
    return Promise.resolve({ kind: "found", records: [entry.canonical], ttlSeconds: 0, authenticated });
  };
  const none = (): Promise<DnsAnswer<string>> => Promise.resolve({ kind: "nodata" });
  const tlsaRecord = (text: string): TlsaRecord => {
    const [usage, selector, matching, data = ""] = text.split(" ");
    return { usage: Number(usage), selector: Number(selector), matching: Number(matching), data };
  };
  const mxRecord = (text: string): MxRecord => {
    const [preference, exchange] = text.split(" ");
    return { preference: Number(preference), exchange: exchange === "." ? "" : (exchange ?? "") };
  };
  return {
    mx: (name) => find(name, (entry) => (entry.mx ?? []).map(mxRecord)),
    a: (name) => find(name, (entry) => entry.a ?? []),
    aaaa: (name) => find(name, (entry) => entry.aaaa ?? []),
    txt: none,
    cname: alias,
    ptr: none,
    tlsa: (name) => {
      const [, host = ""] = /^_\d+\._tcp\.(.+)$/.exec(name) ?? [];
      const entry = zone[host];
      if (typeof entry === "object" && entry.tlsaFails === true)
        return Promise.resolve({ kind: "failed", why: "SERVFAIL" });
      const secure = typeof entry === "object" && entry.tlsaSecure === true;
      return find(host, ({ tlsa = [] }) => tlsa.map(tlsaRecord)).then((answer) =>
        secure && answer.kind === "found" ? { ...answer, authenticated: true } : answer,
      );
    },
    stop: () => undefined,
  };
}

/** One domain, x.test, whose MX mail.test is on loopback. */
export const oneHost: Zone = { "x.test": { mx: ["10 mail.test"] }, "mail.test": { a: ["127.0.0.1"] } };

export function outbound(port: number, over: Partial<OutboundConfig> = {}): OutboundConfig {
  return {
    port,
    source: [],
    allowNetworks: ["127.0.0.0/8"],
    retryMs: [60_000],
    maxAgeMs: 172_800_000,
    tls: "opportunistic",
    timeouts: { connectMs: 1000, greetingMs: 1000, commandMs: 1000, dataMs: 1000, dotMs: 1000 },
    shapingFile: null,
    sign: true,
    smartHost: null,
    ...over,
  };
}

/** Every stage ends after 100 ms in which nothing happens. */
export const impatient = { connectMs: 100, greetingMs: 100, commandMs: 100, dataMs: 100, dotMs: 100 };

export const tlsFixture = {
  key: readFileSync(join(import.meta.dirname, "../fixtures/tls/mail.test.key.pem"), "utf8"),
  cert: readFileSync(join(import.meta.dirname, "../fixtures/tls/mail.test.cert.pem"), "utf8"),
};

export interface Sending {
  body?: string | Buffer;
  /** How the stored message is cut up. */
  chunks?: Buffer[];
  signature?: string;
  job?: Partial<Job>;
  /** The message in ASCII, for a receiver that takes nothing else. */
  ascii?: string;
  eightBit?: boolean;
  smtpUtf8?: boolean;
  mayFinish?: () => boolean;
  route?: Extract<Route, { kind: "hosts" }>;
  source?: Source;
}

/** The system's choice. */
export const anySource: Source = { address: null, hostname: null, weight: 1, warmingSince: null };

export interface Rig {
  delivery: Delivery;
  /** Routes the recipient's domain, then tries. */
  send: (rcptTo: string, sending?: Sending) => Promise<Outcome>;
}

export interface RigOptions {
  port: number;
  zone?: Zone;
  outbound?: Partial<OutboundConfig>;
  clock?: Clock;
  deps?: Partial<DeliveryDeps>;
  /** Certificates that are trusted in place of the system's. */
  trusted?: string[];
}

export function rig(options: RigOptions): Rig {
  const clock = options.clock ?? idleClock;
  const delivery = createDelivery({
    resolver: zoneResolver(options.zone ?? oneHost),
    outbound: outbound(options.port, options.outbound),
    hostname: "mail.sender.test",
    isOurs: () => false,
    mailPorts: [],
    mtaStsOf: () => Promise.resolve(null),
    tlsFor: () => undefined,
    isTlsReport: () => false,
    isCounted: () => true,
    onTls: () => undefined,
    secureContext: createTrust(options.trusted),
    clock,
    log: silentLog,
    random: Math.random,
    ...options.deps,
  });
  return {
    delivery,
    send: async (rcptTo, sending = {}) => {
      const request = makeRequest(rcptTo, sending);
      const route =
        sending.route ?? (await delivery.route(request.job.domain, request.job.message.accountKey));
      if (route.kind === "outcome") return route.decide(request.job, clock.now());
      const outcome = await delivery.attempt({ ...request, route });
      if (outcome.kind === "unsent") throw new Error(`nothing was tried: ${outcome.why}`);
      return outcome;
    },
  };
}

export const message = "From: a@ok.test\r\nSubject: hi\r\n\r\nhello\r\n";

export function makeRequest(rcptTo: string, sending: Sending): Omit<AttemptRequest, "route"> {
  const domain = rcptTo.slice(rcptTo.lastIndexOf("@") + 1);
  const chunks = sending.chunks ?? [Buffer.from(sending.body ?? message)];
  const { ascii, eightBit = false, smtpUtf8 = false } = sending;
  return {
    job: makeJob(1, {
      rcptTo,
      to: rcptTo,
      domain,
      message: makeMessage({ eightBit, smtpUtf8 }),
      ...sending.job,
    }),
    mailFrom: "b+1@bounce.ok.test",
    wire: {
      signature: Buffer.from(sending.signature ?? ""),
      sizeBytes: chunks.reduce((sum, chunk) => sum + chunk.length, 0),
      open: async function* () {
        yield* chunks;
      },
    },
    ascii: async () =>
      ascii === undefined
        ? null
        : {
            signature: Buffer.from("A: 1\r\n"),
            sizeBytes: ascii.length,
            async *open() {
              yield Buffer.from(ascii);
            },
          },
    mayFinish: sending.mayFinish ?? (() => true),
    source: sending.source ?? anySource,
    sourceOf: () => null,
  };
}
