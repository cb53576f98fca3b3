// What is measured: each row is one kind of work, done by contenders in turn, with the targets that it has to
// meet. Names of rows are what --rows takes.
import { measureSmtp, type Load, type Measured } from "./measure.ts";
import { haraka } from "./parties/haraka.ts";
import type { Party, Running, Setting } from "./parties/party.ts";
import { postfix } from "./parties/postfix.ts";
import { product } from "./parties/product.ts";
import type { Sink, SinkOptions, Tools } from "./tools.ts";

export interface Ground {
  running: Running;
  sink: Sink;
  tools: Tools;
}

export interface Contender {
  name: string;
  party: Party;
  setting: Setting;
  sink: SinkOptions;
  /** Measures so many messages. */
  measure(ground: Ground, messages: number): Promise<Measured>;
}

export interface Target {
  /** What is compared, and the bound: `messages per CPU-second ≥ 5 × Postfix + OpenDKIM`. */
  text: string;
  /** From one round's measurements by contender. */
  value(of: (contender: string) => Measured): number;
  least?: number;
  most?: number;
}

export interface Row {
  name: string;
  title: string;
  contenders: Contender[];
  targets: Target[];
}

const sessions = 20;

interface SmtpWork {
  signed: boolean;
  sizeBytes: number;
  newConnections?: boolean;
  destinations?: number;
}

function smtpLoad(work: SmtpWork): Omit<Load, "messages"> {
  const { sizeBytes, newConnections = false, destinations = 1 } = work;
  return { sizeBytes, sessions, newConnections, destinations, perSecond: 0 };
}

function smtpContender(name: string, party: Party, work: SmtpWork): Contender {
  const destinations = work.destinations ?? 1;
  const ours = name === "svc";
  return {
    name,
    party,
    setting: { signed: work.signed, route: ours && work.signed ? "mx" : "relay", destinations },
    sink: { addresses: destinations },
    measure: ({ running, sink, tools }, messages) =>
      measureSmtp(running, sink, tools, { ...smtpLoad(work), messages }, work.signed ? (ours ? 2 : 1) : 0),
  };
}

const signedPeers = (work: SmtpWork): Contender[] => [
  smtpContender("svc", product(), work),
  smtpContender("Postfix + OpenDKIM", postfix, work),
  smtpContender("Haraka + dkim", haraka, work),
];

const least = (what: "perSecond" | "perCpuSecond", factor: number, other: string): Target => ({
  text: `${what === "perSecond" ? "messages/s" : "messages per CPU-second"} ≥ ${factor} × ${other}`,
  value: (of) => of("svc")[what] / of(other)[what],
  least: factor,
});

export const rows: Row[] = [
  {
    name: "signed-4k",
    title: "SMTP in → signed → out, 4 KB, one destination (svc: both keys, by MX; peers: RSA only, relayed)",
    contenders: signedPeers({ signed: true, sizeBytes: 4096 }),
    targets: [
      least("perCpuSecond", 5, "Postfix + OpenDKIM"),
      least("perCpuSecond", 4, "Haraka + dkim"),
      least("perSecond", 5, "Postfix + OpenDKIM"),
    ],
  },
];
