// Sessions by SMTP that are held without a login, on the submission port.
import type { Socket } from "node:net";
import type { Attack } from "../attack.ts";
import { dialTcp, hold, source, tally } from "../wire.ts";

export const smtpAttacks: Attack[] = [
  {
    name: "smtp-noop",
    title: "1,000 sessions on the submission port from 20 addresses say NOOP each second and never log in",
    rampSeconds: 5,
    async run({ starttls }, _given, signal) {
      const greeted = new Set<Socket>();
      const said = tally();
      const noop = setInterval(() => {
        for (const socket of greeted) if (socket.writable) socket.write("NOOP\r\n");
      }, 1_000);
      const dial = (n: number): Promise<Socket | null> => dialTcp(starttls, source(40, n % 1_000, 50));
      const facts = await hold(1_000, 250, signal, dial, (socket) => {
        socket.once("data", (chunk: Buffer) => {
          said.add(chunk.toString("latin1").slice(0, 60).trim());
          socket.write("EHLO x\r\n");
          greeted.add(socket);
        });
        socket.on("data", () => undefined).once("close", () => greeted.delete(socket));
      });
      clearInterval(noop);
      return { ...facts, ...said.facts("greeted") };
    },
  },
];
