// The client that behaves, as a process of its own: send requests and reads over kept connections, /healthz over a new
// one each time, a login and a mail by SMTP each second. Each begins at its time whether or not those before it have
// ended, so that a service that holds still is seen for as long as it does.
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Agent, request } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import { connectSmtp } from "../../test/support/smtp-client.ts";
import { nowMs } from "./attack.ts";
import { answering } from "./child.ts";

export interface ClientStart {
  https: number;
  starttls: number;
  key: string;
  /** `AUTH PLAIN` of it. */
  login: string;
}

export type Kind = "rest" | "health" | "smtp";
export interface Sample {
  kind: Kind;
  at: number;
  /** null: not ended yet. */
  ms: number | null;
  /** What it was answered where that is not what it wanted. */
  fault: string | null;
}
export interface ClientWindow {
  samples: Sample[];
  /** How late its own timers were, milliseconds. */
  lagP99: number;
}

const everyMs = { post: 20, fresh: 200, get: 50, health: 100, smtp: 1000 };
const timeoutMs = 15_000;
const agent = new Agent({ keepAlive: true, maxSockets: 128 });
const samples: Sample[] = [];
const lag = monitorEventLoopDelay({ resolution: 5 });
let [sent, lastId] = [0, ""];

function timed(kind: Kind, work: Promise<string | null>): void {
  const sample: Sample = { kind, at: nowMs(), ms: null, fault: null };
  samples.push(sample);
  work
    .catch((error: unknown) => String(error))
    .then((fault) => Object.assign(sample, { ms: nowMs() - sample.at, fault }))
    .catch(() => undefined);
}

function ask(
  { https, key }: ClientStart,
  method: string,
  path: string,
  body: string | null,
): Promise<string | null> {
  return new Promise((done, fail) => {
    const fresh = path === "/healthz";
    const headers = {
      ...(fresh ? {} : { authorization: `Bearer ${key}` }),
      ...(body === null ? {} : { "content-type": "application/json", "content-length": body.length }),
    };
    const req = request(
      {
        host: "127.0.0.1",
        port: https,
        method,
        path,
        headers,
        agent: fresh ? false : agent,
        rejectUnauthorized: false,
      },
      (res) => {
        let text = "";
        res.on("data", (chunk: Buffer) => (text += chunk.toString()));
        res.on("error", fail);
        res.on("end", () => {
          if (method === "POST" && res.statusCode === 202) lastId = (JSON.parse(text) as { id: string }).id;
          done((res.statusCode ?? 0) < 300 ? null : `${res.statusCode} ${text.slice(0, 300)}`);
        });
      },
    );
    req.on("error", fail);
    req.setTimeout(timeoutMs, () => req.destroy(new Error("no answer within 15 s")));
    req.end(body ?? undefined);
  });
}

/** A login by SMTP and one mail, on a connection of its own. */
async function bySmtp({ starttls, login }: ClientStart): Promise<string | null> {
  const client = await connectSmtp({ port: starttls });
  const late = setTimeout(() => client.reset(), timeoutMs);
  try {
    const banner = await client.answer();
    if (banner.code !== 220) return banner.text;
    await client.startTls();
    const welcome = await client.command(`AUTH PLAIN ${login}`);
    if (welcome.code !== 235) return welcome.text;
    const data = "From: a@ok.test\r\nTo: s@known.test\r\nSubject: by SMTP\r\n\r\nHello\r\n.\r\n";
    const { code, text } = await client.submit("a@ok.test", [`s${++sent}@known.test`], data);
    return code === 250 ? null : text;
  } finally {
    clearTimeout(late);
    client.end();
  }
}

function start(given: ClientStart): void {
  const mail = (to: string): string =>
    JSON.stringify({
      from: "a@ok.test",
      to,
      subject: `number ${sent}`,
      text: "the quick brown fox ".repeat(50),
    });
  const post = (to: string): void => timed("rest", ask(given, "POST", "/v1/messages", mail(to)));
  setInterval(() => post(`r${++sent}@known.test`), everyMs.post);
  setInterval(() => post(`r@fresh${++sent}.test`), everyMs.fresh);
  setInterval(() => {
    if (lastId !== "") timed("rest", ask(given, "GET", `/v1/messages/${lastId}`, null));
  }, everyMs.get);
  setInterval(() => timed("health", ask(given, "GET", "/healthz", null)), everyMs.health);
  setInterval(() => timed("smtp", bySmtp(given)), everyMs.smtp);
  lag.enable();
}

/** Waits for what began within and has not ended. */
async function windowOf({ from, to }: { from: number; to: number }): Promise<ClientWindow> {
  const of = samples.filter(({ at }) => at >= from && at < to);
  for (let i = 0; i < 160 && of.some(({ ms }) => ms === null); i++) await wait(100);
  const lagP99 = lag.percentile(99) / 1e6;
  lag.reset();
  return { samples: of.map((sample) => ({ ...sample })), lagP99 };
}

answering({ start, window: windowOf, resetLag: () => lag.reset() });
