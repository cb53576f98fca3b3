// The table of a run, and the two verdicts of every row: REST p99 within twice its base, mail to known destinations at
// nine tenths of it. Of several rounds the median of the ratios is judged; figures shown are medians too.
import { median } from "../table.ts";
import type { Facts } from "./attack.ts";
import type { Window } from "./measure.ts";

export interface Round {
  base: Window;
  attack: Window;
  facts: Facts;
  /** How the product ended; null: it ran on. */
  gone: string | null;
}
export interface RowResult {
  name: string;
  title: string;
  rounds: Round[];
  verdicts: { text: string; met: boolean; value: number }[];
}

const mostP99 = 2;
const leastMail = 0.9;

export function judged(name: string, title: string, rounds: Round[]): RowResult {
  const slower = median(rounds.map(({ base, attack }) => attack.restP99 / base.restP99));
  const mail = median(rounds.map(({ base, attack }) => attack.knownPerSecond / base.knownPerSecond));
  const faults = median(rounds.map(({ attack }) => attack.restFaults / attack.requests));
  const logins = median(rounds.map(({ attack }) => attack.smtpFaults / attack.logins));
  const runs = rounds.filter(({ gone }) => gone === null).length;
  return {
    name,
    title,
    rounds,
    verdicts: [
      { text: `REST p99 ≤ ${mostP99} × base`, met: slower <= mostP99, value: slower },
      { text: `mail to known destinations ≥ ${leastMail} × base`, met: mail >= leastMail, value: mail },
      { text: "share of REST requests that failed = 0", met: faults === 0, value: faults },
      { text: "share of SMTP logins that failed = 0", met: logins === 0, value: logins },
      { text: "rounds that the product survived", met: runs === rounds.length, value: runs },
    ],
  };
}

const lines: [string, (window: Window) => number | null, digits?: number][] = [
  ["REST p50 ms", (w) => w.restP50, 1],
  ["REST p99 ms", (w) => w.restP99, 1],
  ["REST max ms", (w) => w.restMost],
  ["REST failed %", (w) => (100 * w.restFaults) / w.requests, 1],
  ["/healthz p99 ms", (w) => w.healthP99],
  ["/healthz max ms", (w) => w.healthMost],
  ["/healthz failed", (w) => w.healthFaults],
  ["SMTP login and mail p50 ms", (w) => w.smtpP50],
  ["SMTP login and mail max ms", (w) => w.smtpMost],
  ["SMTP failed", (w) => w.smtpFaults],
  ["mail/s to a known destination", (w) => w.knownPerSecond, 1],
  ["mail/s to fresh destinations", (w) => w.freshPerSecond, 1],
  ["mail/s of the attacker", (w) => w.otherPerSecond, 1],
  ["webhook delay p99 ms", (w) => w.hookP99],
  ["product peak MB", (w) => w.residentMB],
  ["CPU % product", (w) => w.cpu.product],
  ["CPU % attacker", (w) => w.cpu.attacker],
  ["CPU % client", (w) => w.cpu.client],
  ["CPU % world", (w) => w.cpu.world],
  ["CPU % others on the machine", (w) => w.cpu.others],
  ["client's own timer lag p99 ms", (w) => w.clientLagP99, 1],
];

export function sectionOf({ name, title, rounds, verdicts }: RowResult): string {
  const cell = (value: (round: Round) => number | null, digits: number): string => {
    const values = rounds.map(value).filter((one): one is number => one !== null && Number.isFinite(one));
    return values.length === 0 ? "-" : median(values).toFixed(digits);
  };
  const body = lines.map(([head, value, digits = 0]) => {
    const [base, attack] = [cell((r) => value(r.base), digits), cell((r) => value(r.attack), digits)];
    return `${head.padEnd(32)}${base.padStart(12)}${attack.padStart(12)}`;
  });
  const last = rounds.at(-1);
  const said = Object.entries(last?.attack.said ?? {}).map(
    ([kind, text]) => `  ${kind}: ${text.slice(0, 200)}`,
  );
  const facts = rounds.map(({ facts: of, gone }) =>
    [
      ...Object.entries(of).map(([key, value]) => `  ${key}: ${value}`),
      ...(gone ? [`  THE PRODUCT ${gone}`] : []),
    ].join("\n"),
  );
  return [
    `== ${name}: ${title}`,
    `${"".padEnd(32)}${"base".padStart(12)}${"attack".padStart(12)}`,
    ...body.filter((line) => !/-\s+-$/.test(line)),
    ...facts.filter(Boolean),
    ...(said.length > 0 ? ["the client was told:", ...said] : []),
    ...verdicts.map(({ text, met, value }) => `${met ? "met   " : "MISSED"} ${text}: ${value.toFixed(2)}`),
    "",
  ].join("\n");
}
