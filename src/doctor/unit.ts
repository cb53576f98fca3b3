// What systemd says of the service's unit, where it has one.
import { execFile } from "node:child_process";
import type { UnitFacts } from "./check.ts";

const unit = "svc-mail.service";
const askMs = 5_000;

/** Never rejects. null: there is no systemd here, or it has no such unit. */
export function unitFacts(): Promise<UnitFacts | null> {
  const asked = ["LoadState", "UnitFileState", "ActiveState", "Result", "ExecMainStatus"];
  return new Promise((resolve) => {
    execFile(
      "systemctl",
      ["show", unit, ...asked.map((name) => `--property=${name}`)],
      { timeout: askMs },
      (error, stdout) => resolve(error ? null : unitOf(stdout)),
    );
  });
}

/** Of the lines `Name=value` that `systemctl show` prints. */
export function unitOf(shown: string): UnitFacts | null {
  const facts = new Map(
    shown.split("\n").flatMap((line) => {
      const at = line.indexOf("=");
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1).trim()] as const];
    }),
  );
  if (facts.get("LoadState") !== "loaded" && facts.get("LoadState") !== "masked") return null;
  return {
    enabled: facts.get("UnitFileState") || "not installed",
    active: facts.get("ActiveState") ?? "",
    result: facts.get("Result") ?? "success",
    exitStatus: Number(facts.get("ExecMainStatus") ?? 0),
  };
}
