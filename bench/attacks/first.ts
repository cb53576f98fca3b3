// What is measured goes before what else runs on the machine: this process and its children in a group of the cpu
// controller (cgroup v1 or v2) with the most weight there is. Without root, or without control groups, it is left out.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const v1 = "/sys/fs/cgroup/cpu";
const v2 = "/sys/fs/cgroup";

/** Says whether it could be done; undone when this process ends. */
export function goFirst(): boolean {
  const old = existsSync(join(v1, "cpu.shares"));
  const root = old ? v1 : v2;
  const group = join(root, `svc-attacks-${process.pid}`);
  try {
    mkdirSync(group);
    writeFileSync(join(group, old ? "cpu.shares" : "cpu.weight"), old ? "262144" : "10000");
    writeFileSync(join(group, "cgroup.procs"), String(process.pid));
  } catch {
    return false;
  }
  process.on("exit", () => leave(root, group));
  return true;
}

function leave(root: string, group: string): void {
  try {
    for (const pid of readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean))
      writeFileSync(join(root, "cgroup.procs"), pid);
    rmdirSync(group);
  } catch {
    // a process that has just ended still holds it; an empty group does no harm
  }
}

/** The attacker is another machine: here it takes only the processor time that all others leave. Says whether it could be done. */
export function goLast(pid: number): boolean {
  try {
    execFileSync("chrt", ["--all-tasks", "--idle", "--pid", "0", String(pid)], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
