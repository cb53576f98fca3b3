// A customer of the API in front of the whole program, whose time a test moves by hand: keys of every scope, requests
// that say only what matters, and answers taken apart. What is expected of them stands in the tests, by the section of
// the specification of the API that each file is named after.
import type { Timer } from "../../src/clock.ts";
import { ManualClock } from "../support/clock.ts";
import { startProgram, type Program, type ProgramOptions } from "../support/program.ts";
import { eventually, type Answer } from "./asking.ts";

export type { Answer } from "./asking.ts";

export interface Wish {
  /** null: no Authorization; else the value, or a scope: that customer's key. */
  key?: string | null;
  body?: unknown;
  /** In place of `body`, as it stands. */
  raw?: string;
  /** null takes away one that is sent by itself. */
  headers?: Record<string, string | null>;
  /** Where the request comes from; 198.51.100.1 at first. */
  ip?: string;
}

export interface Customer {
  program: Program;
  clock: ManualClock;
  ask(method: string, path: string, wish?: Wish): Promise<Answer>;
  /** Makes a key, and tells its value and id. */
  key(wanted: Record<string, unknown>, account?: string): Promise<{ id: string; value: string }>;
  /** Asks until `look` finds something. Time stands still, but what is due now is done. */
  eventually<T>(look: () => Promise<T | null | undefined | false>): Promise<T>;
  /** The time on the clock, so much later. */
  at(laterMs?: number): string;
  stop(): Promise<void>;
}

export const second = 1000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** A send that is accepted, and whose mail never leaves the machine under a test key. */
export const mail = { from: "shop@ok.test", to: "delivered@simulator.svc", subject: "Hello", text: "Hi" };

/** Limits as they come: the program's own rates. */
export const ownRates = { limits: { min_free_space: "0%" } };

/** What the store waits at most for a commit to be joined by others: it ends by itself, though time stands still. */
const shortestMs = 20;

class StandingClock extends ManualClock {
  override after(delayMs: number, run: () => void): Timer {
    if (delayMs <= 0 || delayMs > shortestMs) return super.after(delayMs, run);
    const handle = setTimeout(run, delayMs);
    return { cancel: () => clearTimeout(handle) };
  }
}

export async function startCustomer(options: Omit<ProgramOptions, "clock"> = {}): Promise<Customer> {
  const clock = new StandingClock();
  const program = await startProgram({ ...options, clock });
  const keys = new Map<string, string>();
  const customer: Customer = {
    program,
    clock,
    async key(wanted, account) {
      const made = await program.admin("POST", "/v1/keys", { name: "k", ...wanted }, account);
      return { id: made.id, value: made.key };
    },
    async ask(method, path, { key = "admin", body, raw, headers = {}, ip = "198.51.100.1" } = {}) {
      const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
      const all: Record<string, string | null> = {
        authorization: key === null ? null : `Bearer ${keys.get(key) ?? key}`,
        "content-type": content === undefined ? null : "application/json",
        "x-forwarded-for": ip,
        ...headers,
      };
      const sent = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== null);
      const told = await program.ask({
        method,
        target: path,
        headers: Object.fromEntries(sent),
        ...(content !== undefined && { body: content }),
      });
      const isJson = /json/.test(told.headers["content-type"] ?? "") && told.text !== "";
      return { ...told, json: isJson ? JSON.parse(told.text) : null };
    },
    eventually: (look) =>
      eventually(async () => {
        await clock.advance(0);
        return look();
      }),
    at: (laterMs = 0) => new Date(clock.now() + laterMs).toISOString(),
    async stop() {
      const over = program.stop().then(() => true);
      while (!(await Promise.race([over, clock.advance(second).then(() => false)]))) continue;
    },
  };
  for (const scope of ["send", "suppressions", "reporting", "admin"])
    keys.set(scope, (await customer.key({ scope })).value);
  keys.set("test", (await customer.key({ scope: "admin", test: true })).value);
  return customer;
}
