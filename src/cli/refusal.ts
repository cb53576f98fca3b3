// An answer of the API other than success, as the fault that ends a command: its exit code, what
// was said, every problem on a line of its own, and what to do. Both error shapes of the API are read.
import { asCalled } from "./as-called.ts";
import { CliFault, type ExitCode } from "./fault.ts";

/** The header that carries --account and SVC_ACCOUNT. */
const accountField = "X-Svc-Account";

const exitOf: Record<number, ExitCode> = { 400: 2, 401: 4, 403: 4, 404: 3, 409: 5 };

/** Both error shapes of the API as one fault. */
export function refusal(
  answer: { status: number; text: string; json: Record<string, unknown> },
  program: string,
): CliFault {
  const inner = answer.json["error"];
  const error =
    inner !== null && typeof inner === "object" ? (inner as Record<string, unknown>) : answer.json;
  const said = asCalled(
    textOf(error["detail"]) ?? textOf(error["message"]) ?? `the daemon answered ${answer.status}`,
    program,
  );
  const code = textOf(error["code"]);
  const all = listOf(error["errors"]);
  const problems = (all.length > 1 ? all : []).map(
    (row) => `  ${textOf(row["field"]) ?? ""}: ${asCalled(textOf(row["issue"]) ?? "", program)}`,
  );
  const records = listOf(error["failing_records"]).map(
    (row) => `  ${textOf(row["type"]) ?? ""} ${textOf(row["name"]) ?? ""}: ${textOf(row["issue"]) ?? ""}`,
  );
  const advice = [...problems, ...records, ...adviceFor(code, error, program)];
  const named = error["field"] === accountField ? `--account: ${said}` : said;
  const message = code === null ? named : `${named} (${code})`;
  return new CliFault(exitOf[answer.status] ?? 1, message, advice, answer.text === "" ? null : answer.text);
}

function adviceFor(code: string | null, error: Record<string, unknown>, program: string): string[] {
  switch (code) {
    case "recipient_suppressed":
      return listOf(error["suppressed_recipients"]).map(
        (row) => `See why: ${program} suppressions show ${textOf(row["email"]) ?? "ADDRESS"}`,
      );
    case "resource_not_found":
      if (error["field"] === accountField) return [`List the accounts: ${program} accounts list`];
      return textOf(error["detail"]) === "There is no such path."
        ? [
            "An API key reaches only the public API; run this command on the server, over its admin socket.",
            `If it ran there, the service is of another version: compare ${program} --version and ${program} status, and start it again.`,
          ]
        : notFound(textOf(error["instance"]) ?? "", program);
    case "scope_insufficient":
      return [`This needs a key of scope ${textOf(error["required_scope"]) ?? "admin"}.`];
    case "rate_limit_exceeded":
    case "service_overloaded":
    case "maintenance":
      return typeof error["retry_after_seconds"] === "number"
        ? [`Try again in ${error["retry_after_seconds"]} s.`]
        : [];
    case "internal_error":
    case "upstream_error":
    case "upstream_timeout":
      return [`Look for ${textOf(error["request_id"]) ?? "the request"} in the daemon's log.`];
    default:
      return [];
  }
}

/** Names the missing resource by the requested path, and the command that lists the existing ones. */
function notFound(path: string, program: string): string[] {
  const [, noun, id] =
    /^\/v1\/(messages|webhooks|domains|suppressions|keys|smtp_credentials|lockouts|accounts|ip_pools)\/([^/]+)/.exec(
      path,
    ) ?? [];
  if (noun === undefined || id === undefined) return [];
  return [
    `"${decoded(id)}" was not found; list them: ${program} ${noun.replace("ip_", "").replace("_", "-")} list`,
  ];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value)
    ? value.filter((row): row is Record<string, unknown> => row !== null && typeof row === "object")
    : [];
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
