// A control group a party: all of its processes, threads and children are measured as one, those that have
// ended too. Works with cgroup v1 (cpuacct) and v2; needs root.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync } from "node:fs";
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

export function createGroup(name: string): Group {
  const folder = join(root, `svc-bench-${process.pid}-${name}`);
  mkdirSync(folder);
  const read = (file: string): string => readFileSync(join(folder, file), "utf8");
  const pids = (): number[] => read("cgroup.procs").split("\n").filter(Boolean).map(Number);
  return {
    spawn(command, args, options = {}) {
      const enter = 'echo $$ > "$0" && exec "$@"';
      return spawn("/bin/sh", ["-c", enter, join(folder, "cgroup.procs"), command, ...args], {
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
      for (let i = 0; i < 100 && pids().length > 0; i++) {
        for (const pid of pids()) signal(pid, i < 50 ? "SIGTERM" : "SIGKILL");
        await wait(100);
      }
      for (let i = 0; i < 50; i++) {
        try {
          return rmdirSync(folder);
        } catch {
          await wait(100); // a process that has just ended still holds it
        }
      }
    },
  };
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
