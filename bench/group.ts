// A control group a party: all of its processes, threads and children are measured as one, those that have
// ended too. Works with cgroup v1 (cpuacct) and v2; needs root.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";

export interface Group {
  spawn(
    command: string,
    args: string[],
    options?: { env?: Record<string, string>; stdio?: ("ignore" | "pipe" | number)[]; cwd?: string },
  ): ChildProcess;
  /** User and system time of all that ever ran in it, in microseconds. */
  cpu(): { user: number; system: number };
  pids(): number[];
  /** Resident memory of what runs now, in bytes; shared pages count once for each process. */
  residentBytes(): number;
  /** Ends what is left in it, and the group. */
  end(): Promise<void>;
}

const v1 = "/sys/fs/cgroup/cpuacct";
const root = existsSync(v1) ? v1 : "/sys/fs/cgroup";
const pageBytes = 4096;
/**
 * All that is measured shares one group of the cpu controller (v1) that goes before what else runs on the
 * machine, so that a neighbour disturbs little.
 */
const first = join(v1, `../cpu/svc-bench-${process.pid}`);
const firstShares = 16_384;

let before = root === v1;

/** What is not measured takes its turn like the rest of the machine. For all groups that are made from now on. */
export function takeTurns(): void {
  before = false;
}

/** What has not ended yet. */
const open = new Set<Group>();

/** One bench at a time in `folder`; what it started ends with it where it is interrupted. */
export async function takeMachine(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  const lock = join(folder, "lock");
  for (let told = false; ; told = true) {
    const owner = existsSync(lock) ? Number(readFileSync(lock, "utf8")) : 0;
    if (!existsSync(`/proc/${owner}`)) break;
    if (!told) process.stderr.write(`waiting for the bench of process ${owner}\n`);
    await wait(1_000);
  }
  writeFileSync(lock, String(process.pid));
  const interrupted = (): void => void endAll().then(() => process.exit(130));
  process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
}

/** For the end of a bench, however it comes. */
export async function endAll(): Promise<void> {
  await Promise.all(Array.from(open, (group) => group.end()));
}

export function createGroup(name: string): Group {
  const folder = join(root, `svc-bench-${process.pid}-${name}`);
  mkdirSync(folder);
  const entered = [join(folder, "cgroup.procs")];
  if (before) {
    mkdirSync(first, { recursive: true });
    writeFileSync(join(first, "cpu.shares"), String(firstShares));
    entered.push(join(first, "cgroup.procs"));
  }
  const read = (file: string): string => readFileSync(join(folder, file), "utf8");
  const pids = (): number[] => read("cgroup.procs").split("\n").filter(Boolean).map(Number);
  const group: Group = {
    spawn(command, args, options = {}) {
      const enter = entered.map((file) => `echo $$ > ${file} && `).join("");
      return spawn("/bin/sh", ["-c", `${enter}exec "$@"`, "sh", command, ...args], {
        stdio: ["ignore", "pipe", "pipe"],
        ...options,
        env: { ...process.env, ...options.env },
      });
    },
    cpu() {
      if (root === v1)
        return {
          user: Number(read("cpuacct.usage_user")) / 1000,
          system: Number(read("cpuacct.usage_sys")) / 1000,
        };
      const stat = new Map(
        read("cpu.stat")
          .split("\n")
          .map((line) => line.split(" ") as [string, string]),
      );
      return { user: Number(stat.get("user_usec")), system: Number(stat.get("system_usec")) };
    },
    pids,
    residentBytes: () => pids().reduce((sum, pid) => sum + residentPages(pid) * pageBytes, 0),
    async end() {
      open.delete(group);
      for (let i = 0; i < 100 && pids().length > 0; i++) {
        for (const pid of pids()) signal(pid, i < 50 ? "SIGTERM" : "SIGKILL");
        await wait(100);
      }
      for (let i = 0; i < 50 && !removed(folder); i++) await wait(100);
      removed(first); // the last one out
    },
  };
  open.add(group);
  return group;
}

/** False while a process that has just ended still holds it. */
function removed(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}

function residentPages(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]);
  } catch {
    return 0; // it has ended meanwhile
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it has ended meanwhile
  }
}

/** Seconds of all processors that were spent on anything since the machine started. */
export function machineBusySeconds(): number {
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = (
    readFileSync("/proc/stat", "utf8").split("\n")[0] ?? ""
  )
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / 100;
}
