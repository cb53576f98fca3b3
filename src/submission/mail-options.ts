// What a mail from SMTP asks for by X-Svc-* fields, under the same rules as the fields of a REST request. An option
// that cannot be met is refused, never dropped.
import type { Problem } from "../errors.ts";
import { readMetadata, readSendAt, readTags } from "./fields.ts";
import { refuseProblems, type Checked } from "./refusals.ts";
import { readShape, type Add, type Switch, type TrackingRequest, type Unsubscribe } from "./shape.ts";
import { readUnsubscribe, untracked } from "./tracking.ts";

export interface MailOptions {
  tags: string[];
  metadata: Record<string, string>;
  sendAt: number | null;
  ipPool: string;
  idempotencyKey: string | null;
  tracking: TrackingRequest;
}

const unsubscribeField = "x-svc-unsubscribe";
const poolField = "x-svc-ip-pool";
const idempotencyKey = /^[\x20-\x7e]{1,255}$/;

/** The pool of this name, of the account's default where it is null; or why there is none. */
export type FindPool = (name: string | null) => Checked & { pool: string | null };

/** `fields`: values by lower-case name. Throws Refusal with every problem. */
export function readOptions(fields: Map<string, string>, now: number, findPool: FindPool): MailOptions {
  const problems: Problem[] = [];
  const options: MailOptions = {
    tags: [],
    metadata: {},
    sendAt: null,
    ipPool: "",
    idempotencyKey: null,
    tracking: { ...untracked },
  };
  const pool = findPool(fields.get(poolField) ?? null);
  options.ipPool = pool.pool ?? "";
  for (const { issue, code } of pool.problems) problems.push({ field: fieldName(poolField), code, issue });
  for (const [name, value] of fields) {
    if (name === poolField) continue;
    const field = fieldName(name);
    const report: Add = (_field, issue, code = "validation_failed") =>
      void problems.push({ field, code, issue });
    readOption(options, name, value, now, report);
  }
  refuseProblems([{ problems, extras: {} }]);
  return options;
}

function readOption(options: MailOptions, name: string, value: string, now: number, report: Add): void {
  if (name === "x-svc-tags") options.tags = readTags(commaList(value), report);
  else if (name === "x-svc-metadata") options.metadata = readMetadata(jsonStrings(value, report), report);
  else if (name === "x-svc-send-at") options.sendAt = readSendAt(value, now, report);
  else if (name === "x-svc-idempotency-key") {
    options.idempotencyKey = value;
    if (!idempotencyKey.test(value)) report("", "expected 1 to 255 printable ASCII characters");
  } else if (name === "x-svc-track-opens") options.tracking.opens = readSwitchField(name, value, report);
  else if (name === "x-svc-track-clicks") options.tracking.clicks = readSwitchField(name, value, report);
  else if (name === unsubscribeField) options.tracking.unsubscribe = readUnsubscribeField(value, report);
  else report("", "is not an option here");
}

function readSwitchField(name: string, value: string, report: Add): Switch | null {
  const lower = value.trim().toLowerCase();
  if (lower === "true" || lower === "false") return { on: lower === "true", field: fieldName(name) };
  report("", 'expected "true" or "false"');
  return null;
}

function readUnsubscribeField(json: string, report: Add): Unsubscribe | null {
  const value = parsed(json);
  return readUnsubscribe(readShape("unsubscribe", value, report), report);
}

/** `X-Svc-Tags`, as the documentation writes it. */
function fieldName(lower: string): string {
  return lower.replace(/(^|-)([a-z])/g, (_, dash: string, letter: string) => dash + letter.toUpperCase());
}

function commaList(value: string): string[] {
  return value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function jsonStrings(json: string, add: Add): Record<string, string> {
  return readShape("metadata", parsed(json), () => add("", "expected a JSON object of strings")) ?? {};
}

/** null, which fits no option, where it is not JSON. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
