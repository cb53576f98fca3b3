// Whether an answer of the API keeps its form, whatever was asked: its headers, the two shapes of a refusal, a code of
// the catalogue with that code's status, and every row of `errors`. What it says is another test's to judge.
import { errorCatalog, type ErrorCode } from "../../src/errors.ts";
import type { ProgramResponse } from "./program.ts";

/** 408 and 431 are HTTP's own, and carry invalid_request. */
const ofHttp = [408, 431];
const rateHeaders = ["limit", "remaining", "reset", "bucket"].map((name) => `x-ratelimit-${name}`);

export interface Question {
  method: string;
  accept?: string | undefined;
  listener?: "public" | "admin" | undefined;
}

/** What is wrong with the answer; nothing where it is as it should be. */
export function faultsOf(told: ProgramResponse, question: Question): string[] {
  const faults: string[] = [];
  const must = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  const header = (name: string): string => String(told.headers[name] ?? "");

  must(told.status < 500, `${told.status}`);
  must(/^req_[0-9a-z]{26}$/.test(header("x-request-id")), `X-Request-Id: ${header("x-request-id")}`);
  must(header("x-api-version-used") === "2026-11", "X-API-Version-Used");
  if (question.listener !== "admin") for (const name of rateHeaders) must(header(name) !== "", `no ${name}`);
  must(
    Object.keys(told.headers).every((name) => !name.startsWith("access-control-")),
    "CORS is open",
  );
  if (question.method === "HEAD" || told.status === 204 || told.status === 304)
    must(told.text === "", "a body where there is none");
  else if (told.status >= 400) faults.push(...refusalFaults(told, question));
  return faults;
}

function refusalFaults(told: ProgramResponse, { accept = "" }: Question): string[] {
  const faults: string[] = [];
  const must = (holds: boolean, fault: string): void => void (holds || faults.push(fault));
  const { status, headers, text } = told;
  const wantsProblem = /application\/problem\+json/i.test(accept);
  const envelope = [401, 403, 429].includes(status) && !wantsProblem;
  const type = envelope ? "application/json" : "application/problem+json";
  must(headers["content-type"] === type, `Content-Type ${String(headers["content-type"])} for ${status}`);
  const body = asRecord(parsed(text));
  const shown = envelope ? asRecord(body["error"]) : body;
  const said = JSON.stringify(shown["code"]);
  const code = isCode(shown["code"]) ? shown["code"] : null;
  must(code !== null, `code ${said}`);
  if (code !== null)
    must(
      errorCatalog[code].status === status || (ofHttp.includes(status) && code === "invalid_request"),
      `${said} with ${status}`,
    );
  must(shown["request_id"] === headers["x-request-id"], "request_id");
  if (envelope) {
    must(Object.keys(body).length === 1, "an envelope with more than its error");
    must(isText(shown["message"]), "no message");
  } else {
    must(isText(shown["title"]) && isText(shown["detail"]), "no title or detail");
    must(shown["status"] === status, "status of the body");
    must(typeof shown["instance"] === "string", "instance");
    must(shown["type"] === `https://mail.svc.test/errors/${String(code)}`, "type");
  }
  if (status === 401) must(headers["www-authenticate"] !== undefined, "no WWW-Authenticate");
  if (status === 405) must(headers.allow !== undefined, "no Allow");
  if (status === 429 || status === 503) {
    must(Number(headers["retry-after"]) >= 1, "no Retry-After");
    must(shown["retry_after_seconds"] === Number(headers["retry-after"]), "retry_after_seconds");
  }
  if (code === "scope_insufficient") must(isText(shown["required_scope"]), "required_scope");
  faults.push(...rowFaults(shown));
  return faults;
}

/** Every problem of a request has a row with a field, words and a code; the first is the refusal's own. */
function rowFaults(shown: Record<string, unknown>): string[] {
  const { errors, field, code } = shown;
  if (errors === undefined) return [];
  if (!Array.isArray(errors) || errors.length === 0) return ["errors is no list with entries"];
  const rows = errors.map(asRecord);
  const bad = rows.filter(
    (row) => typeof row["field"] !== "string" || !isText(row["issue"]) || !isCode(row["code"]),
  );
  const faults = bad.map((row) => `a row of errors: ${JSON.stringify(row)}`);
  if (rows[0]?.["field"] !== field) faults.push("field is not the first row's");
  if (rows[0]?.["code"] !== code)
    faults.push(`code is not the first row's: ${JSON.stringify([code, rows[0]])}`);
  return faults;
}

function isCode(value: unknown): value is ErrorCode {
  return typeof value === "string" && Object.hasOwn(errorCatalog, value);
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value.length > 0;
}

export function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
