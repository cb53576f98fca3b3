// One window of a measurement: what the client saw, what the world received, and what every process used meanwhile.
import { readFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { machineBusySeconds } from "../group.ts";
import { percentile } from "../measure.ts";
import { nowMs } from "./attack.ts";
import type { ClientWindow, Kind } from "./client.ts";
import type { Stand } from "./stand.ts";
import type { Arrivals } from "./world.ts";

export interface Window {
  /** Of send requests and reads, milliseconds from their time to their answer. */
  restP50: number;
  restP99: number;
  restMost: number;
  requests: number;
  restFaults: number;
  healthP99: number;
  healthMost: number;
  healthFaults: number;
  smtpP50: number;
  smtpMost: number;
  smtpFaults: number;
  logins: number;
  /** The first thing that went wrong, by kind. */
  said: Record<string, string>;
  knownPerSecond: number;
  freshPerSecond: number;
  otherPerSecond: number;
  hookP99: number | null;
  residentMB: number;
  /** Shares of one processor, percent. */
  cpu: { product: number; attacker: number; client: number; world: number; others: number };
  clientLagP99: number;
}

export async function measureWindow(
  stand: Stand,
  seconds: number,
  attackerPid: number | null,
): Promise<Window> {
  const pids = {
    product: stand.pid,
    attacker: attackerPid,
    client: stand.client.pid,
    world: stand.world.pid,
  };
  await stand.client.ask("resetLag");
  const [from, before, busyBefore] = [nowMs(), cpuOf(pids), machineBusySeconds()];
  let residentMB = 0;
  const look = setInterval(() => (residentMB = Math.max(residentMB, residentOf(stand.pid))), 50);
  await wait(seconds * 1000);
  clearInterval(look);
  const [to, after, busy] = [nowMs(), cpuOf(pids), machineBusySeconds() - busyBefore];
  const arrivals = await stand.world.ask<Arrivals>("arrivals", { from, to });
  const client = await stand.client.ask<ClientWindow>("window", { from, to });
  const took = (to - from) / 1000;
  const cpu = { ...after };
  for (const name of ["product", "attacker", "client", "world"] as const)
    cpu[name] = ((after[name] - before[name]) / took) * 100;
  const ours = cpu.product + cpu.attacker + cpu.client + cpu.world;
  return {
    ...seenBy(client),
    knownPerSecond: arrivals.known / took,
    freshPerSecond: arrivals.fresh / took,
    otherPerSecond: arrivals.other / took,
    hookP99: percentile(
      arrivals.hooks.toSorted((a, b) => a - b),
      0.99,
    ),
    residentMB,
    cpu: { ...cpu, others: Math.max(0, (busy / took) * 100 - ours) },
    clientLagP99: client.lagP99,
  };
}

function seenBy({ samples }: ClientWindow) {
  const of = (kind: Kind) => {
    const own = samples.filter((sample) => sample.kind === kind);
    const ms = own.map((sample) => sample.ms ?? 20_000).toSorted((a, b) => a - b);
    const at = (share: number): number => percentile(ms, share) ?? NaN;
    return { count: own.length, faults: own.filter(({ ms, fault }) => ms === null || fault).length, at };
  };
  const [rest, health, smtp] = [of("rest"), of("health"), of("smtp")];
  const said: Record<string, string> = {};
  for (const { kind, ms, fault } of samples)
    if (fault !== null || ms === null) said[kind] ??= fault ?? "not answered within 20 s";
  return {
    restP50: rest.at(0.5),
    restP99: rest.at(0.99),
    restMost: rest.at(1),
    requests: rest.count,
    restFaults: rest.faults,
    healthP99: health.at(0.99),
    healthMost: health.at(1),
    healthFaults: health.faults,
    smtpP50: smtp.at(0.5),
    smtpMost: smtp.at(1),
    smtpFaults: smtp.faults,
    logins: smtp.count,
    said,
  };
}

/** Seconds of processor time so far; 0 where there is no such process (any more). */
function cpuOf(pids: Record<"product" | "attacker" | "client" | "world", number | null>) {
  const of = (pid: number | null): number => {
    const fields =
      pid === null
        ? []
        : read(`/proc/${pid}/stat`)
            .replace(/^.*\) /s, "")
            .split(" ");
    return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / 100;
  };
  return {
    product: of(pids.product),
    attacker: of(pids.attacker),
    client: of(pids.client),
    world: of(pids.world),
  };
}

/** MB. */
export function residentOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1000;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
