// How a command ends other than well. The list of exit codes is `svc help exit-codes`.
export const exitCodes = {
  0: "done",
  1: "failed: the daemon understood and refused (422, 429) or had trouble of its own (5xx)",
  2: "usage: the command line, or a value of it (400), is wrong",
  3: "not found (404)",
  4: "not permitted (401, 403, or the socket may not be opened)",
  5: "conflict with what is there (409)",
  6: "the daemon is not reachable",
  7: "a check failed (domains verify)",
  78: "the configuration is wrong; every fault is listed",
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
