// `svc healthcheck`: whether the service lives, or can take mail, as an exit code: for a container's HEALTHCHECK, a load
// balancer's script, cron.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { spanMs } from "../times.ts";

interface Flags {
  live?: boolean;
  ready?: boolean;
  timeout: string;
}

export function register(healthcheck: Command, cli: Cli): void {
  healthcheck
    .option("--live", "the process answers")
    .option(
      "--ready",
      "new mail is taken: the store can be written, the disk has room, no maintenance (standard)",
    )
    .option("--timeout <span>", "exit 1 without an answer after this", "5s")
    .addHelpText(
      "after",
      `
Exit code: 0 healthy, 1 not, 6 the daemon is not reachable.

Examples:
  svc healthcheck --ready
  HEALTHCHECK CMD svc healthcheck --live`,
    )
    .action(async ({ live, ready, timeout }: Flags) => {
      if (live && ready) throw usage("found --live and --ready, expected one of them");
      const timeoutMs = spanMs(timeout, "--timeout");
      if (timeoutMs === 0) throw usage(`--timeout: found "${timeout}", expected a span longer than nothing`);
      const path = live ? "/healthz" : "/readyz";
      const answer = await within(cli, timeoutMs, cli.client.call("GET", path));
      if (cli.out.json) return cli.out.body(answer.text);
      return cli.out.line(live ? "alive" : "ready");
    });
}

async function within<T>(cli: Cli, ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = cli.io.clock.after(ms, () =>
    late.reject(
      new CliFault(1, `no answer within ${ms / 1000} s`, [`See what holds it: ${cli.program} logs`]),
    ),
  );
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    timer.cancel();
  }
}
