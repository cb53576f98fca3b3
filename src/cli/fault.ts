// How a command fails. The list of exit codes is `svc help exit-codes`.
export const exitCodes = {
  0: "done",
  1: "failed: the daemon refused the request (422, 429) or failed itself (5xx)",
  2: "usage error: the command line or one of its values is wrong (400)",
  3: "not found (404)",
  4: "not permitted (401, 403, or the socket may not be opened)",
  5: "conflict with an existing resource (409)",
  6: "the daemon is not reachable",
  7: "a check failed (doctor, healthcheck --ready, db check, domains verify, probe, webhooks verify, blacklists check, blacklists zones test)",
  78: "the configuration is invalid; every fault is listed",
  130: "interrupted by Ctrl-C",
} as const;
export type ExitCode = keyof typeof exitCodes;

/** An expected failure: what was expected, what was found, and in `advice` what to do. */
export class CliFault extends Error {
  readonly exit: ExitCode;
  readonly advice: string[];
  /** The API's own error body, for --json. */
  readonly body: string | null;
  constructor(exit: ExitCode, message: string, advice: string[] = [], body: string | null = null) {
    super(message);
    this.name = "CliFault";
    this.exit = exit;
    this.advice = advice;
    this.body = body;
  }
}

export const usage = (message: string, ...advice: string[]): CliFault => new CliFault(2, message, advice);
