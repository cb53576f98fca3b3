// When the ACME server wants certificates renewed (ACME renewal information, RFC 9773): asked twice a day, of those that it
// issued. Where it does not say, the schedule's time holds; what it says is bounded there.
import { hourMs, type Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { CertificatePair } from "../files.ts";
import type { AcmeClient } from "./client.ts";
import { renewalId } from "./csr.ts";
import { AcmeError } from "./error.ts";
import { renewAtOf } from "./schedule.ts";

export interface RenewalWindows {
  /** null: the server has not said. */
  of(name: string, pair: CertificatePair): number | null;
  /** Asks, once it is time. Never rejects. */
  ask(
    wanted: readonly { name: string }[],
    pairOf: (name: string) => Promise<CertificatePair | null>,
  ): Promise<void>;
  /** Forgets all other names. */
  keep(names: ReadonlySet<string>): void;
}

const askAgainMs = 12 * hourMs;

export function createRenewalWindows(deps: {
  client: Pick<AcmeClient, "hasRenewalInfo" | "renewalWindow">;
  clock: Clock;
  log: Log;
}): RenewalWindows {
  const { client, clock, log } = deps;
  const windows = new Map<string, { cert: string; at: number }>();
  let askedAt = -Infinity;

  const askAll: RenewalWindows["ask"] = async (wanted, pairOf) => {
    if (!(await client.hasRenewalInfo())) return;
    for (const { name } of wanted) {
      const pair = await pairOf(name);
      const id = pair && (await renewalId(pair.leaf));
      const window = id && (await client.renewalWindow(id).catch(ofOne));
      if (pair && window) windows.set(name, { cert: pair.cert, at: renewAtOf(pair, window) });
    }
  };

  return {
    of(name, { cert }) {
      const window = windows.get(name);
      return window?.cert === cert ? window.at : null;
    },
    async ask(wanted, pairOf) {
      if (clock.monotonic() - askedAt < askAgainMs) return;
      askedAt = clock.monotonic();
      try {
        await askAll(wanted, pairOf);
      } catch (error) {
        log.debug({ err: error }, "no renewal information from the ACME server");
      }
    },
    keep(names) {
      for (const name of windows.keys()) if (!names.has(name)) windows.delete(name);
    },
  };
}

/** A server may know nothing of one certificate, of an authority that we had before. */
function ofOne(error: unknown): null {
  if (error instanceof AcmeError && error.scope === "name") return null;
  throw error;
}
