// Mail and requests to addresses that are all over the alphabet, half of them in the history: what a customer's list
// is to the indexes. SMTP in lockstep over 20 sessions; a message's number is in its X-Bench-Number field.
import { Agent, request } from "node:https";
import { connect } from "node:net";
import { once } from "node:events";
import { ports } from "./tools.ts";
import { personAddress, receivers } from "./scale-fill.ts";

const sessions = 20;
const line = "the quick brown fox jumps over the lazy dog and back again, all day long\r\n";

/** Every second one of the history's `people`; never one that is suppressed. */
export function anyAddress(people: number): string {
  if (Math.random() < 0.5) return personAddress(Math.floor(Math.random() * people));
  const local = (Math.floor(Math.random() * 2 ** 31) * 2).toString(16).padStart(8, "0");
  return `${local}@d${Math.floor(Math.random() * receivers)}.test`;
}

/** Rejects where a mail is not accepted. */
export async function sendMails(messages: number, sizeBytes: number, people: number): Promise<void> {
  const body = line.repeat(Math.ceil(sizeBytes / line.length));
  let begun = 0;
  const number = (): number | null => (begun < messages ? begun++ : null);
  await Promise.all(Array.from({ length: sessions }, () => converse(number, body, () => anyAddress(people))));
}

export async function sendOne(to: string, sizeBytes: number): Promise<void> {
  const body = line.repeat(Math.ceil(sizeBytes / line.length));
  const numbers = [0];
  await converse(
    () => numbers.pop() ?? null,
    body,
    () => to,
  );
}

async function converse(number: () => number | null, body: string, address: () => string): Promise<void> {
  const socket = connect(ports.smtp, "127.0.0.1").setNoDelay(true);
  let held = "";
  let heard: (text: string) => void = () => undefined;
  socket.on("data", (chunk: Buffer) => {
    held += chunk.toString("latin1");
    const last = held.lastIndexOf("\r\n", held.length - 3);
    if (!held.endsWith("\r\n") || held[last < 0 ? 3 : last + 5] === "-") return;
    const text = held;
    held = "";
    heard(text);
  });
  const failed = once(socket, "close").then(() => Promise.reject(new Error("the connection was closed")));
  failed.catch(() => undefined);
  const answer = (): Promise<string> => new Promise((done) => (heard = done));
  const say = async (text: string, code: string): Promise<void> => {
    const answered = answer();
    socket.write(text, "latin1");
    const got = await Promise.race([answered, failed]);
    if (!got.startsWith(code)) throw new Error(`${text.slice(0, 60).trim()}: ${got.trim()}`);
  };
  try {
    await say("", "220");
    await say("EHLO source.test\r\n", "250");
    for (let n = number(); n !== null; n = number()) {
      const to = address();
      await say("MAIL FROM:<sender@example.test>\r\n", "250");
      await say(`RCPT TO:<${to}>\r\n`, "250");
      await say("DATA\r\n", "354");
      const date = new Date().toUTCString().replace("GMT", "+0000");
      await say(
        `From: <sender@example.test>\r\nTo: <${to}>\r\nDate: ${date}\r\nSubject: number ${n}\r\n` +
          `Message-Id: <${n}.${process.hrtime.bigint()}@example.test>\r\nX-Bench-Number: ${n}\r\n\r\n${body}.\r\n`,
        "250",
      );
    }
  } finally {
    socket.destroy();
  }
}

/** POST /v1/messages over keep-alive connections, to be sent in three hours; how long each answer took, ms, sorted. */
export async function postMessages(key: string, requests: number, people: number): Promise<number[]> {
  const connections = 4;
  const agent = new Agent({ keepAlive: true, maxSockets: connections, rejectUnauthorized: false });
  const sendAt = new Date(Date.now() + 3 * 3_600_000).toISOString();
  const text = line.repeat(Math.ceil(4096 / line.length));
  const times: number[] = [];
  let begun = 0;
  const run = async (): Promise<void> => {
    while (begun++ < requests) {
      const content = { from: "sender@example.test", to: [anyAddress(people)], subject: "posted", text };
      const began = performance.now();
      const status = await post(agent, key, JSON.stringify({ ...content, send_at: sendAt }));
      times.push(performance.now() - began);
      if (status !== 202) throw new Error(`POST /v1/messages: ${status}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, run));
  agent.destroy();
  return times.toSorted((a, b) => a - b);
}

function post(agent: Agent, key: string, body: string): Promise<number> {
  return new Promise((done, fail) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": body.length,
    };
    const req = request(
      { agent, host: "127.0.0.1", port: ports.https, path: "/v1/messages", method: "POST", headers },
      (res) => {
        res.resume().on("end", () => done(res.statusCode ?? 0));
      },
    );
    req.on("error", fail).end(body);
  });
}
