// systemd/svc-mail.service: what a process that dies depends on for its next start, and a sandbox in which the engine
// can compile. Where systemd is installed, its own judgement too.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodes } from "../src/cli/fault.ts";

const root = join(import.meta.dirname, "..");
const unit = readFileSync(join(root, "systemd/svc-mail.service"), "utf8");
const analyze = spawnSync("systemd-analyze", ["--version"]).status === 0;
if (!analyze && process.env["CI"]) throw new Error("systemd-analyze is missing: run .ci/peers.sh as root");

/** Every value of a key; systemd.syntax(7). */
const values = (key: string): string[] =>
  unit.split("\n").flatMap((line) => (line.startsWith(`${key}=`) ? [line.slice(key.length + 1)] : []));
const value = (key: string): string => {
  const [only, ...more] = values(key);
  expect(more, key).toEqual([]);
  return only ?? "";
};

test("a process that ends in any way but a wrong configuration is started again within a second", () => {
  expect(value("Restart")).toBe("always");
  expect(value("RestartSec")).toBe("200ms");
  expect(exitCodes[78]).toContain("configuration");
  expect(value("RestartPreventExitStatus")).toBe("78");
  // A minute of crashes at this rate must not use up its starts.
  expect(Number(value("StartLimitBurst"))).toBeGreaterThan(60);
});

test("systemd hears when it serves, reads its files again on request, and ends what hangs", () => {
  expect(value("Type")).toBe("notify");
  expect(value("NotifyAccess")).toBe("all"); // systemd-notify is a process of its own
  // A write that hangs for 25 s on a slow disk is none that ends the service: the last sign of life may be a third of the time old.
  expect((Number(value("WatchdogSec")) * 2) / 3).toBeGreaterThan(25);
  expect(Number(value("WatchdogSec"))).toBeLessThanOrEqual(60);
  expect(value("ExecReload")).toContain("kill -HUP $MAINPID");
  expect(value("TimeoutStartSec")).toBe("infinity"); // a migration takes as long as it takes
  expect(Number(value("TimeoutStopSec"))).toBeGreaterThan(30);
});

test("the sandbox leaves the engine its compiler, and the process no capability but low ports", () => {
  expect(values("MemoryDenyWriteExecute")).toEqual([]);
  expect(value("SystemCallFilter").split(" ")).toEqual(["@system-service", "@pkey"]);
  expect(value("CapabilityBoundingSet")).toBe("CAP_NET_BIND_SERVICE");
  expect(value("AmbientCapabilities")).toBe("CAP_NET_BIND_SERVICE");
  expect(value("NoNewPrivileges")).toBe("yes");
  expect([value("StateDirectory"), value("RuntimeDirectory")]).toEqual(["svc", "svc"]);
});

test.runIf(analyze)("systemd finds no fault in it, and little exposure", () => {
  const file = join(mkdtempSync(join(tmpdir(), "svc-unit-")), "svc-mail.service");
  writeFileSync(file, unit.replace("/usr/bin/svc", join(root, "bin/svc"))); // it wants the program to be there
  const verified = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
  expect([verified.status, verified.stderr]).toEqual([0, ""]);
  const report = execFileSync("systemd-analyze", ["security", "--offline=true", "--threshold=25", file], {
    encoding: "utf8",
  });
  expect(report).toMatch(/Overall exposure level for svc-mail\.service: [01]\.\d OK/);
});
