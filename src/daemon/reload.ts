// What SIGHUP and `svc reload` read again: the shaping file and the certificates. What is unusable is logged, and what was
// read before stays. Options need a restart; which of them changed is said.
import type { Log } from "../log.ts";
import type { Reloaded } from "../model/reload.ts";
import type { ShapingRules } from "../queue/shaping-rules.ts";
import type { Tls } from "../tls/tls.ts";
import type { Changes } from "./base.ts";

export function createReload({
  shapingRules,
  tls,
  changes,
  log,
}: {
  shapingRules: Pick<ShapingRules, "reloadFile">;
  tls: Pick<Tls, "reload">;
  changes: Changes;
  log: Log;
}): () => Promise<Reloaded> {
  return async (): Promise<Reloaded> => {
    const failed: Reloaded["failed"] = [];
    const note = (part: Reloaded["failed"][number]["part"], faults: string[]): void =>
      void (faults.length > 0 && failed.push({ part, faults }));
    note("shaping_file", shapingRules.reloadFile());
    const certificate = await tls.reload();
    note("certificates", certificate === null ? [] : [certificate.message]);
    const now = changes();
    if ("faults" in now) note("configuration", now.faults);
    const restartFor = "changed" in now ? now.changed : [];
    if (failed.length > 0 || restartFor.length > 0)
      log.warn({ failed, restart_needed_for: restartFor }, "reloaded, but not all of it is in use");
    return { failed, restartFor };
  };
}
