// `svc doctor`: all that can be wrong around a mail server, looked at in order, each check with a time limit. Asked for by
// the operator, and each hour; the operator hears when a check changes between well and not (notifications/).
import type { Clock } from "../clock.ts";
import { Refusal } from "../errors.ts";
import type { Log } from "../log.ts";
import type { HasJobs } from "../service.ts";
import { unknown, type Check, type Finding, type FindingStatus, type World } from "./check.ts";
import { certificateCheck } from "./checks/certificate.ts";
import { domainChecks } from "./checks/domains.ts";
import { machineChecks } from "./checks/machine.ts";
import { nameChecks } from "./checks/names.ts";
import { serviceChecks } from "./checks/service.ts";

export const checks: readonly Check[] = [
  ...nameChecks,
  ...domainChecks,
  certificateCheck,
  ...serviceChecks,
  ...machineChecks,
];

export interface Result extends Finding {
  id: string;
}

export interface Wanted {
  /** Ids; null: all. */
  only: readonly string[] | null;
  skip: readonly string[];
  /** Of the checks of domains: this one alone. */
  domain: string | null;
}

export interface Doctor extends HasJobs {
  /** Throws Refusal where one is running for somebody else. */
  run(wanted: Wanted): Promise<Result[]>;
  /** Of the last hourly look; null: there was none yet. */
  last(): { at: number; results: Result[] } | null;
}

export interface DoctorDeps {
  /** As it is now. */
  world(wanted: Pick<Wanted, "domain">): Promise<World>;
  /** Checks that are not as they were at the last hourly look; after the first one of a run, those that fail. */
  onChanged(changed: readonly Result[]): void;
  clock: Clock;
  log: Log;
}

/** All together end before a client gives up. */
const checkMs = 15_000;
const atOnce = 10;
const everything: Wanted = { only: null, skip: [], domain: null };

export function createDoctor({ world, onChanged, clock, log }: DoctorDeps): Doctor {
  let running = false;
  let last: { at: number; results: Result[] } | null = null;
  /** Of each check, what was last known. */
  let known: readonly Result[] = [];

  const run = async (wanted: Wanted): Promise<Result[]> => {
    if (running) throw new Refusal("conflict", "The doctor is at work already. Try again when it has ended.");
    running = true;
    try {
      return await runChecks(await world(wanted), wanted, clock);
    } finally {
      running = false;
    }
  };

  return {
    run,
    last: () => last,
    jobs: [
      {
        name: "doctor",
        cron: "23 * * * *",
        async run() {
          if (running) return; // the operator's run; the next hour comes
          const results = await run(everything);
          const changed = last === null ? failed(results) : changedSince(known, results);
          known = lastKnown(known, results);
          last = { at: clock.now(), results };
          for (const { id, status, saw } of changed)
            log.warn({ check: id, status, saw }, "a check of the doctor changed");
          if (changed.length > 0) onChanged(changed);
        },
      },
    ],
  };
}

/** In the order of the list. A check that takes too long, or has a fault, is unknown. */
export async function runChecks(world: World, wanted: Wanted, clock: Clock): Promise<Result[]> {
  const chosen = checks.filter(
    ({ id }) => (wanted.only === null || wanted.only.includes(id)) && !wanted.skip.includes(id),
  );
  const results: Result[] = [];
  for (let from = 0; from < chosen.length; from += atOnce)
    results.push(
      ...(await Promise.all(
        chosen
          .slice(from, from + atOnce)
          .map(async (check) => ({ id: check.id, ...(await inTime(check, world, clock)) })),
      )),
    );
  return results;
}

async function inTime(check: Check, world: World, clock: Clock): Promise<Finding> {
  const { promise: late, resolve } = Promise.withResolvers<Finding>();
  const timer = clock.after(checkMs, () => resolve(unknown(`no result within ${checkMs / 1000} s`)));
  try {
    return await Promise.race([check.run(world), late]);
  } catch (error) {
    return unknown(error instanceof Error ? error.message : String(error));
  } finally {
    timer.cancel();
  }
}

const isWell = (status: FindingStatus | undefined): boolean => status === undefined || status === "ok";

/** After a start the operator hears of what fails; a warning was sent when it arose, and each restart would send it again. */
const failed = (results: readonly Result[]): Result[] => results.filter(({ status }) => status === "fail");

/** What went wrong, or is well again, or became worse. What is not known changes nothing. */
export function changedSince(known: readonly Result[], now: readonly Result[]): Result[] {
  const statusOf = new Map(known.map(({ id, status }) => [id, status]));
  return now.filter(({ id, status }) => {
    const was = statusOf.get(id);
    if (status === "unknown") return false;
    return isWell(was) ? !isWell(status) : was !== status;
  });
}

/** What is not known now is as it was. */
export function lastKnown(known: readonly Result[], now: readonly Result[]): Result[] {
  const ofNow = now.filter(({ status }) => status !== "unknown");
  const ids = new Set(ofNow.map(({ id }) => id));
  return [...ofNow, ...known.filter(({ id }) => !ids.has(id))];
}
