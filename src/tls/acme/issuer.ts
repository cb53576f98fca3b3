// Keeps the certificates that an ACME server issues: one with the host's names, one for each tracking name, so that no
// customer's DNS can take the certificate of another name down. Orders what is due, one after the other; schedule.ts says
// when, client.ts how. What an account can cause is bounded: its orders a day, and a failing name waits longer each time.
import { join } from "node:path";
import { dayMs, isoTime, type Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import { certificatePair, type CertificatePair } from "../files.ts";
import type { AcmeClient } from "./client.ts";
import { makeRequest, renewalId } from "./csr.ts";
import { AcmeError, said } from "./error.ts";
import { keepRecord, readRecord, untried, type AcmeRecord, type NameRecord } from "./record.ts";
import { createRenewalWindows } from "./renewal-windows.ts";
import { againAt, askedTooOften, directoryRetryAt, mostOrders, renewAt, retryAt } from "./schedule.ts";
import { createStoredCertificates, isFileName } from "./stored-certificates.ts";

/** What a certificate is wanted for. */
export interface Wanted {
  /** Of its file, and what the operator calls it: the first of its names. */
  name: string;
  names: readonly string[];
  /** Whose tracking name it is; null: the host's own names. */
  account: number | null;
}

export interface IssuedState {
  name: string;
  names: readonly string[];
  pair: CertificatePair | null;
  /** When it is ordered next, if nothing holds it back. */
  renewAt: number | null;
  nextAttemptAt: number | null;
  renewing: boolean;
  failures: number;
  error: string | null;
}

export interface IssuerDeps {
  /** <dataDir>/tls */
  folder: string;
  client: AcmeClient;
  wanted(): Promise<Wanted[]>;
  onIssued(wanted: Wanted): Promise<void>;
  onFailed(failure: {
    name: string;
    isHost: boolean;
    error: string;
    failures: number;
    nextAt: number;
    until: number | null;
  }): void;
  clock: Clock;
  log: Log;
  /** The stop of the program. */
  signal: AbortSignal;
}

/** `unknown`: no certificate of that name is kept. */
export interface NotRenewed {
  reason: "unknown" | "refused";
  text: string;
}

export interface Issuer {
  /** Orders what is due. Never rejects. */
  run(): Promise<void>;
  /** Orders this one at once. null: it is begun. */
  renew(name: string): Promise<NotRenewed | null>;
  list(): Promise<IssuedState[]>;
  /** Those whose last order failed, but for tracking names that were given up. */
  failing(): { name: string; isHost: boolean; error: string; nextAt: number | null }[];
}

/**
 * Failures in a row after which the operator is not notified of a tracking name: a domain that was deleted, or leads
 * elsewhere for good. It is tried once a week.
 */
export const givenUpAfter = 8;
/** A time further away is one of a clock that was wrong. */
const longestWaitMs = 8 * dayMs;

export function createIssuer(deps: IssuerDeps): Issuer {
  const { folder, client, clock, log, signal } = deps;
  const recordFile = join(folder, "acme.json");
  const certificates = createStoredCertificates(folder, log);
  const windows = createRenewalWindows(deps);
  const asked = new Set<string>();
  const hosts = new Set<string>();
  let record: AcmeRecord | null = null;
  let reading: Promise<AcmeRecord> | null = null;
  let running: Promise<void> | null = null;
  let under: string | null = null;

  const recordOf = async (): Promise<AcmeRecord> => (record = await (reading ??= readRecord(recordFile)));
  const stateOf = ({ names }: AcmeRecord, name: string): NameRecord => (names[name] ??= untried());

  const wantedNow = async (): Promise<Wanted[]> =>
    (await deps.wanted()).filter(({ name }) => isFileName(name));

  const renewalOf = (pair: CertificatePair | null, { name, names }: Wanted): number | null => {
    if (pair === null || !names.every((one) => pair.covers(one))) return null;
    return windows.of(name, pair) ?? renewAt(pair);
  };

  const heldUntil = (nextAt: number | null, now: number): number =>
    nextAt !== null && nextAt < now + longestWaitMs ? nextAt : 0;

  /** The next one to order, null: none. Who ordered least goes first, so that no account is in the way of others. */
  const nextOf = async (all: readonly Wanted[], done: ReadonlySet<string>): Promise<Wanted | null> => {
    const now = clock.now();
    const kept = await recordOf();
    const today = kept.orders.filter(({ at }) => at > now - dayMs && at <= now);
    const ordersOf = (account: number): number => today.filter((one) => one.account === account).length;
    let found: { wanted: Wanted; orders: number } | null = null;
    for (const wanted of all) {
      const { name, account } = wanted;
      if (done.has(name)) continue;
      const due = (renewalOf(await certificates.of(name), wanted) ?? 0) <= now;
      if (asked.has(name)) return wanted;
      if (!due || heldUntil(kept.names[name]?.nextAt ?? null, now) > now) continue;
      if (account === null) return wanted;
      const orders = ordersOf(account);
      if (today.length >= mostOrders.ofAll || orders >= mostOrders.ofAccount) continue;
      if (found === null || orders < found.orders) found = { wanted, orders };
    }
    return found?.wanted ?? null;
  };

  const issue = async ({ name, names }: Wanted): Promise<CertificatePair> => {
    const { csr, key } = await makeRequest(names);
    const old = await certificates.of(name);
    const replaces = old === null ? null : await renewalId(old.leaf);
    const chain = await client.order({ names, csr, replaces });
    const origin = { cert: "the certificate of the ACME server", key: "our key" };
    const pair = certificatePair(chain, key, origin);
    const missing = names.filter((one) => !pair.covers(one));
    if (missing.length > 0) throw new AcmeError(`${origin.cert} does not name ${missing.join(", ")}`);
    if (pair.validUntil <= clock.now())
      throw new AcmeError(`${origin.cert} expired at ${isoTime(pair.validUntil)}`);
    return pair;
  };

  const attempt = async (wanted: Wanted, save: () => Promise<void>): Promise<void> => {
    const { name, account } = wanted;
    const kept = await recordOf();
    const state = stateOf(kept, name);
    if (account !== null) kept.orders.push({ at: clock.now(), account });
    const before = state.nextAt;
    state.nextAt = retryAt(clock.now(), state.failures + 1, account === null, 0);
    try {
      // On disk before the order: a crash that comes again and again must not order again and again.
      await save();
      const pair = await issue(wanted);
      await certificates.put(name, pair);
      const nextAt = againAt(pair, clock.now());
      kept.names[name] = { ...untried(), nextAt, issued: [...state.issued, clock.now()] };
      kept.directory = { failures: 0, error: null, nextAt: null };
      log.info({ name, until: isoTime(pair.validUntil) }, "the ACME server issued a certificate");
    } catch (error) {
      if (signal.aborted) {
        state.nextAt = before; // the stop ended it, and not the server
        return save();
      }
      failed(wanted, kept, error);
    }
    if (kept.names[name]?.error === null) await deps.onIssued(wanted);
    await save();
  };

  const failed = ({ name, account }: Wanted, kept: AcmeRecord, error: unknown): void => {
    const now = clock.now();
    const state = stateOf(kept, name);
    const text = said(error instanceof Error ? error.message : String(error));
    const { scope, retryAfterMs } =
      error instanceof AcmeError ? error : { scope: "directory" as const, retryAfterMs: 0 };
    state.failures += 1;
    state.error = text;
    if (scope === "name") {
      state.failed.push(now);
      state.nextAt = retryAt(now, state.failures, account === null, retryAfterMs);
    } else {
      const { failures } = kept.directory;
      const nextAt = directoryRetryAt(now, failures + 1, retryAfterMs);
      kept.directory = { failures: failures + 1, error: text, nextAt };
      state.nextAt = nextAt;
    }
    log.warn({ name, detail: text, next: isoTime(state.nextAt) }, "no certificate from the ACME server");
    const until = certificates.until(name);
    deps.onFailed({
      name,
      isHost: account === null,
      error: text,
      failures: state.failures,
      nextAt: state.nextAt,
      until,
    });
  };

  const round = async (): Promise<void> => {
    const all = await wantedNow();
    const names = new Set(all.map(({ name }) => name));
    for (const { name, account } of all) if (account === null) hosts.add(name);
    windows.keep(names);
    for (const name of asked) if (!names.has(name)) asked.delete(name);
    await certificates.keep(names);
    const save = async (): Promise<void> =>
      keepRecord(recordFile, await recordOf(), clock.now(), (name) => names.has(name));
    const done = new Set<string>();
    for (;;) {
      const { directory } = await recordOf();
      const resting = heldUntil(directory.nextAt, clock.now()) > clock.now();
      if (resting && asked.size === 0) return;
      if (!resting) await windows.ask(all, certificates.of);
      if (signal.aborted) return;
      const next = await nextOf(resting ? all.filter(({ name }) => asked.has(name)) : all, done);
      if (next === null) return;
      done.add(next.name);
      under = next.name;
      try {
        await attempt(next, save);
      } finally {
        asked.delete(next.name);
        under = null;
      }
    }
  };

  const run = (): Promise<void> =>
    (running ??= round()
      .catch((error: unknown) => {
        if (!signal.aborted) log.error({ err: error }, "certificates could not be looked after");
      })
      .finally(() => (running = null)));

  return {
    run,
    async renew(name) {
      const all = await wantedNow();
      if (!all.some((one) => one.name === name))
        return { reason: "unknown", text: `no certificate is kept for ${name}` };
      const until = askedTooOften((await recordOf()).names[name] ?? untried(), clock.now());
      if (until !== null)
        return {
          reason: "refused",
          text: `it was ordered as often as the limits of ACME servers allow; try again after ${isoTime(until)}`,
        };
      asked.add(name);
      // A round that is under way may have passed it.
      void (running ?? Promise.resolve()).then(run);
      return null;
    },
    failing: () =>
      Object.entries(record?.names ?? {}).flatMap(([name, { error, nextAt, failures }]) => {
        const isHost = hosts.has(name);
        return error === null || (!isHost && failures >= givenUpAfter)
          ? []
          : [{ name, isHost, error, nextAt }];
      }),
    async list() {
      const now = clock.now();
      const kept = await recordOf();
      const states: IssuedState[] = [];
      for (const wanted of await wantedNow()) {
        const { name, names } = wanted;
        const pair = await certificates.of(name); // one after the other: each costs the loop a millisecond when it is first read
        const renewal = renewalOf(pair, wanted);
        const state = kept.names[name] ?? untried();
        const held = Math.max(heldUntil(state.nextAt, now), heldUntil(kept.directory.nextAt, now));
        states.push({
          name,
          names,
          pair,
          renewAt: renewal,
          nextAttemptAt: Math.max(renewal ?? now, held),
          renewing: under === name || asked.has(name),
          failures: state.failures,
          error: state.error ?? (pair === null ? kept.directory.error : null),
        });
      }
      return states;
    },
  };
}
