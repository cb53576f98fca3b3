// Who goes now. Lanes wait in a heap by due time; a due lane is routed to its group of
// destinations and claimed only as far as the group has slots (gates.ts), so that a destination that hangs or a long
// backlog starves nobody. Every claim is a lease on disk. An attempt's end frees its slot at once and is settled in
// one transaction; while outcomes cannot be written (writes.ts), nothing new is claimed. What an outcome changes: settle.ts.
// Over 300 lines: the parts share one small state, and apart they would be harder to follow than together.
import { forwardTime, type Clock, type Timer } from "../clock.ts";
import type { Owner } from "../fairness.ts";
import type { Log } from "../log.ts";
import type { Job } from "../mail/envelope.ts";
import { untried, type Outcome, type Unsent } from "../mail/outcome.ts";
import type { Family, Source } from "../pools/sources.ts";
import type { Service } from "../service.ts";
import { StoreUnavailable, type Settlement, type Store } from "../store/store.ts";
import { createAddressWaits } from "./address-waits.ts";
import { createAttemptSlots } from "./attempt-slots.ts";
import { createTimeHeap } from "./heap.ts";
import { createGates, freeSlots, takeSeat, tokenWaitMs, type Gate, type Seat } from "./gates.ts";
import { sandboxLane } from "./lane.ts";
import { createRouting, type Destination } from "./routing.ts";
import type { Shaping } from "./shaping.ts";
import { createWrites, logStoreFault } from "./writes.ts";

export interface RunnerDeps {
  store: Pick<Store, "lanes" | "claimDue" | "renewLeases" | "release" | "takeBackLeases" | "settle">;
  /** Routes a lane as of now; cheap when it is known. Never rejects for what a network does. */
  destinationOf(lane: string): Promise<Destination>;
  /** What the outcome of a job changes. */
  settlementOf(job: Job, outcome: Outcome, now: number, group: string): Settlement;
  /** A bounce without an attempt where the recipient was suppressed since acceptance; null: try. */
  suppressedSince(job: Job): Promise<Outcome | null>;
  /** Nothing of the account is begun: it goes back, and the store puts it on hold. */
  isPaused(accountKey: number): boolean;
  /** Mail of the lane waits, since its pool can use no address. */
  onNoSource(lane: string): void;
  shaping: Shaping;
  /** [0, 1): which of a pool's addresses. */
  random(): number;
  /** Names this boot; leases of any other are taken back at start. */
  owner: string;
  clock: Clock;
  log: Log;
}

/** A slot that is promised to a recipient whose acceptance is on its way to the disk. */
export interface Reservation {
  lease: { owner: string; until: number };
  to: Destination;
  seat: Seat<Line>;
}

export interface Runner extends Service {
  /** A slot for a recipient that is about to be accepted, where its lane has one and nothing waits before it; else null. */
  reserve(lane: string): Reservation | null;
  /** The acceptance failed: the slot is free again. */
  forgo(reservation: Reservation): void;
  /** The job was inserted under its reservation's lease: it starts now. */
  run(reservation: Reservation, job: Job): void;
  /** Recipients of `lane` wait in the store, the earliest until `dueAt`. */
  note(lane: string, dueAt: number): void;
  /** It has changed which addresses can be used: what waited for one looks again. */
  reconsider(): void;
  /** Attempts that run now, and outcomes and returns that wait to be written. */
  counts(): { active: number; unwritten: number };
}

/** Mail that waits together: of one pool, for one group of destinations. */
interface Line {
  name: string;
  /** The account whose mail it is: the accounts share the slots. */
  account: Owner;
  group: string;
  sources: () => readonly Source[];
  /** `seats` are those of this list. */
  known: readonly Source[];
  seats: Seat<Line>[];
  /** Attempts that run, and slots promised to acceptances. */
  taken: number;
  /** Claimed and waiting for a slot. */
  ready: { job: Job; to: Destination }[];
  /** Lanes with due recipients, served in turn. */
  due: { lane: string; to: Destination }[];
  claiming: boolean;
  wake: Timer | null;
}

const leaseMs = 600_000;
const claimMost = 100;
const lanePage = 1000;
/** Lanes that become due in one turn of the loop. */
const lanesATurn = 1000;
/** The timer looks again at least this often, since the wall clock may jump. */
const lookAgainMs = 30_000;
const storeRetryMs = 1_000;
/** Mail of a pool that can use no address looks again when that changes, and in any case after this. */
const heldMs = 600_000;
/** What was not tried, since its address could not be used after all. */
const unsentRetryMs = 10_000;
/** After a fault of this program: neither a tight loop nor a lost mail. */
const faultRetryMs = 60_000;
/** From this many lines on, those at rest are forgotten. */
const linesMost = 10_000;

/** A fault of ours is a deferral like any other: it is told, tried again by the schedule, and it expires. */
function faultOutcome(startedAt: number, endedAt: number): Outcome {
  const text = "[local] a fault of this program, which its log describes";
  return {
    kind: "deferred",
    reply: { code: 451, status: "4.3.0", text },
    classification: "unclassified",
    retryAfterMs: null,
    trace: untried(startedAt, endedAt),
  };
}

export function createRunner(deps: RunnerDeps): Runner {
  const { store, clock, log, owner } = deps;
  const now = forwardTime(clock);
  const lines = new Map<string, Line>();
  const gates = createGates<Line>(deps.shaping, clock);
  const addressWaits = createAddressWaits();
  const waiting = createTimeHeap();
  const routing = createRouting(deps);
  /** Lanes that are being routed, stand in a line's `due`, or are being claimed; true: became due again meanwhile. */
  const busy = new Map<string, boolean>();
  const slots = createAttemptSlots<Line>();
  const running = new Set<Promise<void>>();
  let active = 0;
  let linesSweptAt = linesMost;
  let leasedUntil = clock.monotonic() + leaseMs;
  let started = false;
  let stopping = false;
  let alarm: { at: number; timer: Timer } | null = null;
  let renewal: Timer | null = null;
  const writes = createWrites({
    clock,
    log,
    onResume() {
      if (stopping) return;
      wakeLanes();
      for (const line of lines.values()) pump(line);
    },
  });

  const mayFinish = (): boolean => clock.monotonic() < leasedUntil;
  const blocked = (): boolean => stopping || writes.holding();

  const lineOf = ({ line: name, account, group, sources }: Destination): Line => {
    let line = lines.get(name);
    if (!line) {
      if (lines.size >= linesSweptAt) forgetRested();
      line = {
        name,
        account,
        group,
        sources,
        known: [],
        seats: [],
        taken: 0,
        ready: [],
        due: [],
        claiming: false,
        wake: null,
      };
      lines.set(name, line);
    }
    return line;
  };

  const seatsOf = (line: Line): Seat<Line>[] => {
    const sources = line.sources();
    if (sources !== line.known) {
      line.known = sources;
      line.seats = gates.seats(sources, line.group);
    }
    return line.seats;
  };

  /** A line that does nothing and may do all that its shape allows is the same as none. */
  const forgetRested = (): void => {
    const kept = new Set<Gate<Line>>();
    for (const [name, { taken, ready, due, claiming, wake, seats }] of lines) {
      const idle = taken === 0 && ready.length === 0 && due.length === 0 && !claiming && wake === null;
      if (idle && seats.every(({ gate }) => gate.pace.rested())) lines.delete(name);
      else for (const { gate } of seats) kept.add(gate);
    }
    gates.forget(kept);
    linesSweptAt = Math.max(linesMost, 2 * lines.size);
  };

  // --- lanes become due -----------------------------------------------------

  const note = (lane: string, dueAt: number): void => {
    waiting.push(lane, dueAt);
    arm();
  };

  const arm = (): void => {
    const next = waiting.peek();
    if (blocked() || !started || next === null) return;
    if (alarm && alarm.at <= next) return;
    alarm?.timer.cancel();
    const timer = clock.after(Math.min(Math.max(0, next - now()), lookAgainMs), () => {
      alarm = null;
      wakeLanes();
    });
    alarm = { at: next, timer };
  };

  const wakeLanes = (): void => {
    for (let left = lanesATurn; left > 0 && !blocked(); left--) {
      const lane = waiting.popDue(now());
      if (lane === null) break;
      if (busy.has(lane)) busy.set(lane, true);
      else routeLane(lane);
    }
    arm();
  };

  const routeLane = (lane: string): void => {
    busy.set(lane, false);
    const to = routing.known(lane);
    if (to) enlist(lane, to);
    else void askLane(lane);
  };

  const askLane = async (lane: string): Promise<void> => {
    const to = await routing.ask(lane);
    if (to) enlist(lane, to);
    else leaveLane(lane, now() + faultRetryMs);
  };

  const enlist = (lane: string, to: Destination): void => {
    const line = lineOf(to);
    if (seatsOf(line).length > 0) addressWaits.end(lane, now());
    line.due.push({ lane, to });
    pump(line);
  };

  const leaveLane = (lane: string, dueAt: number | null): void => {
    const again = busy.get(lane) === true;
    busy.delete(lane);
    if (again) waiting.push(lane, now());
    if (dueAt !== null) waiting.push(lane, dueAt);
    arm();
  };

  // --- lines fill their slots --------------------------------------------------

  const room = (line: Line): number => {
    const seats = seatsOf(line);
    const free = freeSlots(seats);
    if (free === 0) {
      for (const { gate } of seats) gate.waiting.add(line);
      return 0;
    }
    return slots.room(line, free);
  };

  const pump = (line: Line): void => {
    if (seatsOf(line).length === 0) return hold(line);
    while (line.ready.length > 0 && !blocked() && room(line) > 0) {
      const seat = takeSeat(seatsOf(line), deps.random);
      if (!seat) {
        sleepUntilToken(line);
        return;
      }
      slots.take(line);
      const next = line.ready.shift();
      if (next) launch(line, seat, next.job, next.to, false);
    }
    void claim(line);
  };

  const sleepUntilToken = (line: Line): void => {
    line.wake ??= clock.after(tokenWaitMs(seatsOf(line)), () => {
      line.wake = null;
      pump(line);
    });
  };

  /** None of the pool's addresses can be used: nothing is claimed, and what is goes back untried. */
  const hold = (line: Line): void => {
    if (blocked()) return;
    const lane = line.due[0]?.lane ?? line.ready[0]?.job.lane;
    if (lane !== undefined) deps.onNoSource(lane);
    void giveBack(
      line.ready.splice(0).map(({ job }) => job),
      now(),
    );
    for (const { lane } of line.due.splice(0)) {
      addressWaits.begin(lane, now());
      leaveLane(lane, now() + heldMs);
    }
  };

  /** Claims for the free slots and as many again, so that a freed slot need not wait for the store. */
  const claim = async (line: Line): Promise<void> => {
    const wanted = Math.min(claimMost, 2 * Math.max(room(line), line.taken) - line.ready.length);
    if (line.claiming || blocked() || wanted <= 0 || line.ready.length > line.taken / 2) return;
    const next = line.due.shift();
    if (!next) return;
    line.claiming = true;
    try {
      const at = now();
      const claimed = await store.claimDue({
        owner,
        lane: next.lane,
        limit: wanted,
        now: at,
        leaseUntil: at + leaseMs,
        waits: addressWaits.of(next.lane),
      });
      addressWaits.claimed(next.lane, claimed.nextDueAt);
      for (const job of claimed.jobs) line.ready.push({ job, to: next.to });
      if (claimed.nextDueAt !== null && claimed.nextDueAt <= now())
        routeLane(next.lane); // to the back of the line
      else leaveLane(next.lane, claimed.nextDueAt);
    } catch (error) {
      logStoreFault(log, "claimDue", error);
      leaveLane(next.lane, now() + (error instanceof StoreUnavailable ? storeRetryMs : faultRetryMs));
    }
    line.claiming = false;
    if (stopping)
      await giveBack(
        line.ready.splice(0).map(({ job }) => job),
        now(),
      );
    else pump(line);
  };

  // --- attempts ------------------------------------------------------------------

  const launch = (line: Line, seat: Seat<Line>, job: Job, to: Destination, fresh: boolean): void => {
    active += 1;
    const work = attempt(line, seat, job, to, fresh).finally(() => running.delete(work));
    running.add(work);
  };

  const attempt = async (
    line: Line,
    seat: Seat<Line>,
    job: Job,
    to: Destination,
    fresh: boolean,
  ): Promise<void> => {
    const startedAt = now();
    if (deps.isPaused(job.message.accountKey)) {
      free(line, seat);
      return giveBack([job], startedAt);
    }
    let outcome: Outcome | Unsent;
    let held = seat;
    const sourceOf = (family: Family): Source | null => {
      const other = takeSeat(gates.seats(to.sourcesOf(family), line.group), deps.random);
      if (!other) return null;
      leaveSeat(line, held);
      held = other;
      return other.source;
    };
    try {
      outcome =
        (fresh ? null : await deps.suppressedSince(job)) ??
        (await to.attempt(job, mayFinish, seat.source, sourceOf));
    } catch (error) {
      const { id } = job.message;
      log.error({ message: id, to: job.to, err: error }, "an attempt failed by a fault of this program");
      outcome = faultOutcome(startedAt, now());
    }
    if ("classification" in outcome && outcome.classification === "rate_limited") held.gate.pace.slowDown();
    free(line, held);
    if (outcome.kind === "unsent") {
      log.warn({ message: job.message.id, to: job.to, why: outcome.why }, "not tried; it goes back in line");
      await giveBack([job], now() + unsentRetryMs);
    } else if (stopping && wasCutShort(outcome)) await giveBack([job], now());
    else await settle(job, outcome, now(), to.group);
  };

  const free = (line: Line, seat: Seat<Line>): void => {
    active -= 1;
    slots.leave(line);
    leaveSeat(line, seat);
    slots.runWaiting(pump);
  };

  const leaveSeat = (line: Line, { gate }: Seat<Line>): void => {
    gate.taken -= 1;
    letIn(line, gate);
  };

  /** Lines that share the gate go by turns: whoever finds it full again stands behind the others. */
  const letIn = (own: Line, gate: Gate<Line>): void => {
    let served = false;
    for (const line of gate.waiting) {
      if (gate.taken >= gate.pace.limit()) break;
      gate.waiting.delete(line);
      served ||= line === own;
      pump(line);
    }
    if (!served) pump(own);
  };

  /** Made within the write, so that an outcome which cannot be put into words is kept too, and not sent again. */
  const settle = (job: Job, outcome: Outcome, at: number, group: string): Promise<void> => {
    let settlement: Settlement | null = null;
    return writes.add({
      call: "settle",
      run: async () => store.settle((settlement ??= deps.settlementOf(job, outcome, at, group))),
      tried() {
        const dueAt = settlement?.nextAttemptAt ?? null;
        if (dueAt !== null) note(job.lane, dueAt);
      },
    });
  };

  const giveBack = async (jobs: Job[], dueAt: number): Promise<void> => {
    if (jobs.length === 0) return;
    const keys = jobs.map((job) => job.key);
    await writes.add({
      call: "release",
      run: () => store.release(owner, keys, dueAt),
      tried() {
        for (const { lane } of jobs) note(lane, dueAt);
      },
    });
  };

  // --- life --------------------------------------------------------------------------

  const renew = (): void => {
    renewal = clock.after(leaseMs / 3, () => {
      const begun = clock.monotonic();
      store.renewLeases(owner, now() + leaseMs).then(
        () => void (leasedUntil = begun + leaseMs),
        (error: unknown) => logStoreFault(log, "renewLeases", error),
      );
      renew();
    });
  };

  const loadLanes = async (): Promise<void> => {
    for (let after: string | null = null; !stopping;) {
      const page: { lane: string; dueAt: number }[] = await store.lanes(after, lanePage);
      for (const { lane, dueAt } of page) {
        if (dueAt <= now()) addressWaits.overdue(lane);
        note(lane, dueAt);
      }
      after = page.at(-1)?.lane ?? null;
      if (page.length < lanePage) return;
    }
  };

  return {
    name: "queue",
    async start() {
      const taken = await store.takeBackLeases(owner, now(), sandboxLane);
      if (taken > 0)
        log.warn(
          { recipients: taken },
          "what was claimed when the program last ended is sent again; a message whose attempt had begun may arrive twice",
        );
      started = true;
      renew();
      await loadLanes();
      arm();
    },
    async stop() {
      stopping = true;
      writes.halt();
      for (const timer of [alarm?.timer, renewal]) timer?.cancel();
      const unstarted: Job[] = [];
      for (const line of lines.values()) {
        line.wake?.cancel();
        unstarted.push(...line.ready.splice(0).map(({ job }) => job));
      }
      await giveBack(unstarted, now());
      await Promise.all(running);
      await writes.finish();
    },
    reserve(lane) {
      const to = started && !blocked() ? routing.known(lane) : null;
      if (!to) return null;
      const line = lineOf(to);
      if (line.ready.length > 0 || line.due.length > 0 || room(line) === 0) return null;
      const seat = takeSeat(seatsOf(line), deps.random);
      if (!seat) return null;
      slots.take(line);
      return { lease: { owner, until: now() + leaseMs }, to, seat };
    },
    forgo({ to, seat }) {
      const line = lineOf(to);
      slots.leave(line);
      leaveSeat(line, seat);
      slots.runWaiting(pump);
    },
    run({ to, seat }, job) {
      const line = lineOf(to);
      if (!stopping) return launch(line, seat, job, to, true);
      slots.leave(line);
      seat.gate.taken -= 1;
      return void giveBack([job], now());
    },
    reconsider() {
      routing.forget(); // which families a pool has is a part of them
      for (const line of lines.values()) pump(line);
      for (const lane of addressWaits.changed(now())) waiting.push(lane, now());
      arm();
    },
    note,
    counts: () => ({ active, unwritten: writes.kept() }),
  };
}

/** Of an attempt that ends while the program stops: no server's word and nothing sent, so it proves nothing. */
function wasCutShort(outcome: Outcome): boolean {
  return outcome.kind === "deferred" && !outcome.trace.ambiguous && outcome.reply.text.startsWith("[local] ");
}
