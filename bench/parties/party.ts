// What a measured mail server is to the bench: started on a fresh folder, given mail by SMTP on
// ports.smtp, where it trusts this machine, or on ports.smtps, stopped. All that it is made of runs in its group.
import { execFileSync } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import type { Group } from "../group.ts";
import type { Login, Tools } from "../tools.ts";

export interface Setting {
  /** DKIM for example.test. */
  signed: boolean;
  /** The product signs with its RSA key alone, as the peers do. */
  rsaOnly?: boolean;
  /** It listens on ports.smtps, too, and knows a login. */
  submission?: boolean;
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
  /** Where `submission` was asked for. */
  login?: Login;
  stop(): Promise<void>;
}

export interface Party {
  name: string;
  /** Whether it can do this work at all. */
  start(setting: Setting, tools: Tools): Promise<Running>;
}

/** What the product makes for itself: a self-signed certificate with a P-256 key. */
export function makeCertificate(certificate: string, key: string): void {
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"];
  const files = ["-subj", "/CN=relay.test", "-out", certificate, "-keyout", key];
  execFileSync("openssl", ["req", "-x509", ...kind, ...files], { stdio: "ignore" });
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
