// The refusal of a message: every problem at once (one Refusal with the code of the first problem), or the one reason
// that takes precedence over all of them.
import { isoTime } from "../clock.ts";
import { Refusal, type Problem, type RefusalExtras } from "../errors.ts";
import { maxMessageBytes } from "../mail/intake.ts";
import type { Suppression } from "../model/suppression.ts";
import { inFieldOrder } from "./request.ts";

/** What one check found; `extras` go into the answer beside the problems. */
export interface Checked {
  problems: Problem[];
  extras: RefusalExtras;
}

export const sound: Checked = { problems: [], extras: {} };

/** Seconds after which a client may expect room again. */
const retryAfterSeconds = 5;

/** One Refusal that lists all that the checks found, null where they found nothing; of the same extra the first check's counts. */
export function problemsRefusal(checks: Checked[]): Refusal | null {
  const errors = inFieldOrder(checks.flatMap(({ problems }) => problems));
  const [first] = errors;
  if (!first) return null;
  const extras = checks.reduce<RefusalExtras>((all, check) => ({ ...check.extras, ...all }), {});
  const summary = `${first.field}: ${first.issue}`;
  const detail = errors.length === 1 ? summary : `${errors.length} problems; the first: ${summary}`;
  return new Refusal(first.code, detail, { field: first.field, errors, ...extras });
}

/** Throws what problemsRefusal finds. */
export function refuseProblems(checks: Checked[]): void {
  const refusal = problemsRefusal(checks);
  if (refusal) throw refusal;
}

/** `fieldOf`: where the request names that address. */
export function suppressedProblems(entries: Suppression[], fieldOf: (canonical: string) => string): Checked {
  if (entries.length === 0) return sound;
  return {
    problems: entries.map(({ canonical, reason }) => ({
      field: fieldOf(canonical),
      code: "recipient_suppressed",
      issue: `is on the suppression list (${reason})`,
    })),
    extras: {
      suppressed_recipients: entries.map(({ email, reason, createdAt }) => ({
        email,
        reason,
        created_at: isoTime(createdAt),
      })),
    },
  };
}

export function refuseTooLarge(bytes: number): void {
  if (bytes <= maxMessageBytes) return;
  throw new Refusal(
    "message_too_large",
    `the finished message would have ${bytes} bytes or more; at most ${maxMessageBytes}`,
  );
}

export function noRoom(why: string): Refusal {
  return new Refusal("service_overloaded", `${why}; nothing was accepted, try again later`, {
    retry_after_seconds: retryAfterSeconds,
  });
}

export function notAnObject(): Refusal {
  const issue = "expected a JSON object";
  return new Refusal("validation_failed", issue, {
    field: "",
    errors: [{ field: "", code: "validation_failed", issue }],
  });
}
