// What destinations that are dead cost the others: `npm run bench:isolation -- [--rows stalls,dead,names] [--rounds 2]`.
// Each row measures live mail alone and then beside them, on one product, in rounds on products started afresh.
//   stalls  50 destinations that stall at every stage of a session: the throughput of a healthy one
//   dead    10,000 mails to a host that refuses and to one that swallows connections: the time of 1,000 live mails
//   names   2,000 domains whose name servers are silent, 5 mails each: the time of 1,000 mails to domains never seen
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { loadavg } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startBlackHole } from "../test/support/black-hole.ts";
import { connectSmtp } from "../test/support/smtp-client.ts";
import { endAll, takeMachine } from "./group.ts";
import { allAnswered, measureSmtp, type Measured } from "./measure.ts";
import { product, type RunningProduct } from "./parties/product.ts";
import { median } from "./table.ts";
import { compile, folder, ports, startSink, type Sink, type Tools } from "./tools.ts";

interface Round {
  alone: number;
  beside: number;
  told: string;
}

interface Row {
  unit: string;
  /** The verdict on the medians. */
  bound: { text: string; met(alone: number, beside: number): boolean };
  measure(running: RunningProduct, sink: Sink, tools: Tools): Promise<Round>;
}

const { values: flags } = parseArgs({
  options: {
    rows: { type: "string", default: "stalls,dead,names" },
    rounds: { type: "string", default: "2" },
  },
});
const live = "127.0.1.1";

const rows: Record<string, Row> = {
  stalls: {
    unit: "mails/s",
    bound: { text: "beside ≥ 90 % of alone", met: (alone, beside) => beside >= 0.9 * alone },
    async measure(running, sink, tools) {
      const stalled = await startStalls(50);
      for (const [n] of stalled.entries()) {
        running.dns.set(`stall${n}.test`, "MX", [`10 mx.stall${n}.test`], 3600);
        running.dns.set(`mx.stall${n}.test`, "A", [stallAddress(n)], 3600);
      }
      const load = { messages: 6_000, sizeBytes: 4096, sessions: 20, newConnections: false };
      const rate = (): Promise<Measured> =>
        measureSmtp(running, sink, tools, { ...load, destinations: 1, perSecond: 0 }, 2);
      await rate();
      const before = await rate();
      await submit(Array.from({ length: 2_000 }, (_, n) => `r${n}@stall${n % 50}.test`));
      await until(() => stalled.reduce((sum, { open }) => sum + open(), 0) >= 50 * 8);
      const open = stalled.reduce((sum, stall) => sum + stall.open(), 0);
      const beside = await rate();
      const cpu = `CPU ${before.cpuMicros.toFixed(0)} and ${beside.cpuMicros.toFixed(0)} µs a mail`;
      for (const { server } of stalled) server.close();
      return {
        alone: before.perSecond,
        beside: beside.perSecond,
        told: `${open} sessions stalled as it began; ${cpu}`,
      };
    },
  },
  dead: {
    unit: "s",
    bound: { text: "beside < 60 s", met: (_, beside) => beside < 60 },
    async measure(running, sink) {
      const endHole = await startBlackHole("127.0.200.1", ports.sink);
      running.dns.set("swallows.test", "MX", ["10 mx.swallows.test"], 3600);
      running.dns.set("mx.swallows.test", "A", ["127.0.200.1"], 3600);
      running.dns.set("refuses.test", "MX", ["10 mx.refuses.test"], 3600);
      running.dns.set("mx.refuses.test", "A", ["127.0.200.2"], 3600);
      const toLive = (): Promise<number> =>
        timed(
          sink,
          Array.from({ length: 1_000 }, (_, n) => `r${n}@d0.test`),
        );
      const alone = await toLive();
      await submit(Array.from({ length: 10_000 }, (_, n) => `r${n}@${n % 2 ? "refuses" : "swallows"}.test`));
      const beside = await toLive();
      await endHole();
      return { alone, beside, told: "10,000 mails to both dead hosts were taken before" };
    },
  },
  names: {
    unit: "s",
    bound: { text: "beside ≤ 1.2 × alone", met: (alone, beside) => beside <= 1.2 * alone },
    async measure(running, sink) {
      const { dns } = running;
      for (const word of ["first", "second", "third"])
        for (let n = 0; n < 1_000; n++) {
          dns.set(`${word}${n}.test`, "MX", [`10 mx.${word}${n}.test`], 3600);
          dns.set(`mx.${word}${n}.test`, "A", [live], 3600);
        }
      for (let n = 0; n < 2_000; n++) dns.fail(`silent${n}.test`, "timeout");
      const toFresh = (word: string): Promise<number> =>
        timed(
          sink,
          Array.from({ length: 1_000 }, (_, n) => `r@${word}${n}.test`),
        );
      await toFresh("first"); // warm
      const alone = await toFresh("second");
      await submit(Array.from({ length: 10_000 }, (_, n) => `r${n}@silent${n % 2_000}.test`));
      const beside = await toFresh("third");
      return { alone, beside, told: "10,000 mails to domains of silent name servers were taken before" };
    },
  },
};

const tools = compile();
await takeMachine(folder);
try {
  for (const name of flags.rows.split(",")) {
    const row = rows[name];
    if (!row) throw new Error(`there is no row ${name}: ${Object.keys(rows).join(", ")}`);
    const done: Round[] = [];
    for (let i = 0; i < Number(flags.rounds); i++) {
      const sink = await startSink(tools, { addresses: 1 });
      const running = (await product().start(
        { signed: true, route: "mx", destinations: 1 },
        tools,
      )) as RunningProduct;
      try {
        const round = await row.measure(running, sink, tools);
        done.push(round);
        const load = loadavg().map((one) => one.toFixed(1));
        process.stdout.write(
          `${name}: alone ${round.alone.toFixed(2)} ${row.unit}, beside ${round.beside.toFixed(2)} ${row.unit} (${round.told}; load ${load.join(" ")})\n`,
        );
      } finally {
        await running.stop();
        await sink.stop();
      }
    }
    const [alone, beside] = [median(done.map((one) => one.alone)), median(done.map((one) => one.beside))];
    process.stdout.write(
      `${row.bound.met(alone, beside) ? "met" : "MISSED"} ${name}: ${row.bound.text}: ${(beside / alone).toFixed(2)}\n`,
    );
  }
} finally {
  await endAll();
}

/** Seconds from the first of the mails until the sink has taken all. */
async function timed(sink: Sink, recipients: string[]): Promise<number> {
  await sink.reset();
  const began = performance.now();
  await submit(recipients);
  if (await allAnswered(sink, recipients.length)) throw new Error("live mail did not arrive");
  return (performance.now() - began) / 1000;
}

/** By SMTP, over ten sessions. */
async function submit(recipients: string[]): Promise<void> {
  const rest = recipients.values();
  const session = async (): Promise<void> => {
    const client = await connectSmtp({ port: ports.smtp });
    await client.answer();
    await client.command("EHLO bench.test");
    for (const to of rest) {
      const data = `From: a@example.test\r\nTo: ${to}\r\nSubject: x\r\n\r\n${"text ".repeat(200)}\r\n.\r\n`;
      const { code, text } = await client.submit("a@example.test", [to], data);
      if (code !== 250) throw new Error(`${to}: ${text}`);
    }
    client.end();
  };
  await Promise.all(Array.from({ length: 10 }, session));
}

async function until(done: () => boolean): Promise<void> {
  for (let i = 0; i < 600 && !done(); i++) await wait(100);
}

function stallAddress(n: number): string {
  return `127.0.200.${10 + n}`;
}

/** Each of them goes on to its own stage and never says more. */
async function startStalls(count: number): Promise<{ server: Server; open(): number }[]> {
  const stages = ["", "220", "EHLO", "MAIL", "RCPT", "DATA", "."];
  const replies: Record<string, string> = {
    EHLO: "250 stall.test",
    MAIL: "250 ok",
    RCPT: "250 ok",
    DATA: "354 go on",
  };
  return Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const stage = stages[n % stages.length] ?? "";
      let open = 0;
      const server = createServer((socket) => {
        open += 1;
        socket.on("close", () => (open -= 1)).on("error", () => socket.destroy());
        if (stage === "") return void socket.pause();
        if (stage !== "220") socket.write("220 stall.test ESMTP\r\n");
        else socket.write("220-stall.test\r\n");
        socket.on("data", (chunk: Buffer) => {
          for (const line of chunk.toString("latin1").split("\r\n")) {
            const verb = line.slice(0, 4).toUpperCase().trim();
            if (verb === stage) return;
            const reply = replies[verb];
            if (reply !== undefined && stage !== "220") socket.write(`${reply}\r\n`);
          }
        });
      });
      await once(server.listen(ports.sink, stallAddress(n)), "listening");
      return { server, open: () => open };
    }),
  );
}
