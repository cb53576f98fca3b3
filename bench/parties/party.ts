// What a measured mail server is to the bench: started on a fresh folder, given mail by SMTP on
// ports.smtp, stopped. All that it is made of runs in its group.
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Group } from "../group.ts";
import type { Tools } from "../tools.ts";

export interface Setting {
  /** DKIM for example.test. */
  signed: boolean;
  /** The product finds its receivers by MX, or sends all to one host as the peers do. */
  route: "mx" | "relay";
  /** Recipient domains: d0.test … */
  destinations: number;
  /** Milliseconds that each sync of the disk takes longer. */
  slowDiskMs?: number;
  /** What runs instead of bin/svc. */
  command?: [string, ...string[]];
}

export interface Running {
  group: Group;
  stop(): Promise<void>;
}

export interface Party {
  name: string;
  /** Whether it can do this work at all. */
  start(setting: Setting, tools: Tools): Promise<Running>;
}

/** Resolves once a banner comes from the port. */
export async function answers(port: number, seconds = 30): Promise<void> {
  const banner = (): Promise<boolean> =>
    new Promise((done) => {
      const socket = connect({ host: "127.0.0.1", port });
      socket.once("data", () => done(true)).once("error", () => done(false));
      socket.setTimeout(2_000, () => done(false));
      socket.once("data", () => socket.destroy());
    });
  for (let tries = 0; tries < seconds * 10; tries++) {
    if (await banner()) return;
    await wait(100);
  }
  throw new Error(`no banner from port ${port}`);
}
