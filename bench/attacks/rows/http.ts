// Connections to the API that are held: answers that nobody reads, bodies that never end, idle ones, slow headers.
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Attack } from "../attack.ts";
import { asker, dialTls, hold, inParallel, requestText, source, tally } from "../wire.ts";

const perSecond = 250;
const script = requestText("GET", "/docs/redoc.js", null, null);

/** The first line that a held connection is told. */
function listen(socket: Socket, heard: Set<string>): void {
  socket.on("data", (chunk: Buffer) => {
    const text = chunk.toString("latin1");
    if (heard.size < 5)
      heard.add(`${text.slice(0, text.indexOf("\r"))} ${/"code":"[^"]*"/.exec(text)?.[0] ?? ""}`);
  });
}

export const httpAttacks: Attack[] = [
  {
    name: "http-unread",
    title: "2,000 connections from 20 addresses ask for the script of /docs and never read",
    rampSeconds: 10,
    run: ({ https }, _given, signal) =>
      hold(
        2_000,
        perSecond,
        signal,
        (n) => dialTls(https, source(20, n % 2_000, 100)),
        (socket) => {
          socket.pause();
          socket.write(script);
        },
      ),
  },
  {
    name: "http-bodies",
    rampSeconds: 5,
    title: "1,000 bodies of 200 KB that lack their last byte, half of them with a valid key",
    prepare: async (stand) => ({ key: await stand.keyOf("b", "send") }),
    async run({ https }, { key = "" }, signal) {
      const heard = new Set<string>();
      const body = `{"from":"a@b.test","to":"r@others.test","subject":"x","text":"${"x".repeat(199_000)}"}`;
      const cut = (text: string): string => text.slice(0, -1);
      const [withKey, without] = [key, null].map((one) =>
        cut(requestText("POST", "/v1/messages", one, body)),
      );
      const dial = (n: number): Promise<Socket | null> => dialTls(https, source(21, n % 1_000, 50));
      const facts = await hold(1_000, perSecond, signal, dial, (socket, n) => {
        listen(socket, heard);
        socket.write((n % 2 === 0 ? withKey : without) ?? "");
      });
      return { ...facts, said: [...heard].join(" | ") };
    },
  },
  {
    name: "http-idle",
    title: "5,000 idle TLS connections from 50 addresses",
    rampSeconds: 20,
    run: ({ https }, _given, signal) =>
      hold(
        5_000,
        perSecond,
        signal,
        (n) => dialTls(https, source(22, n % 5_000, 100)),
        (socket) => {
          socket.resume();
        },
      ),
  },
  {
    name: "http-slow",
    rampSeconds: 5,
    title: "1,000 connections from 20 addresses write an octet of a header each second",
    async run({ https }, _given, signal) {
      const heard = new Set<string>();
      const open: Socket[] = [];
      const drip = setInterval(() => {
        for (const socket of open) if (socket.writable) socket.write("a");
      }, 1_000);
      const dial = (n: number): Promise<Socket | null> => dialTls(https, source(23, n % 1_000, 50));
      const facts = await hold(1_000, perSecond, signal, dial, (socket) => {
        listen(socket, heard);
        socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: ");
        open.push(socket);
      });
      clearInterval(drip);
      return { ...facts, said: [...heard].join(" | ") };
    },
  },
  {
    name: "http-open",
    title: "40 connections from 4 addresses ask for the script of /docs as fast as they read",
    async run({ https }, _given, signal) {
      const answers = tally();
      let bytes = 0;
      await inParallel(40, 40, signal, async (n) => {
        const socket = await dialTls(https, source(24, n, 10));
        const ask = socket ? asker(socket) : null;
        if (!ask) answers.add("not let in");
        while (ask && !signal.aborted) {
          const heard = await Promise.race([ask(script), wait(10_000, null)]);
          answers.add(heard === null ? "closed" : String(heard.status));
          bytes += heard?.bytes ?? 0;
          if (heard === null) break;
          if (heard.status === 429) await wait(100);
        }
        socket?.destroy();
      });
      return { ...answers.facts("answered"), "MB read": Math.round(bytes / 1e6) };
    },
  },
];
