// Scores mail/returned.ts on a folder of labelled bounces: `npx node bench/bounces.ts FOLDER [--list]`. The folder
// holds bounces/*.eml, bounces-not/, bounces-err/ and bounces-expected.tsv (file, row, status, replycode, reason,
// hardbounce, feedback_type). Prints one table; the exit status is 1 where a target is missed.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Classification } from "../src/model/classification.ts";
import { ruleOf } from "../src/mail/classify.ts";
import { classifyFailure, replyOf, type Failure } from "../src/mail/failure.ts";
import { delayWarning } from "../src/mail/bounce-text.ts";
import { noFailure, readReturned, type ReturnContext, type Returned } from "../src/mail/returned.ts";
import { failureSuppresses } from "../src/suppressions/policy.ts";

const [folder = "", flag] = process.argv.slice(2);
const list = flag === "--list";

/** What each reason of the labels may be called here; null: not scored. */
const reasons: Record<string, Classification[] | null> = {
  userunknown: ["invalid_recipient"],
  hasmoved: ["invalid_recipient"],
  hostunknown: ["invalid_domain"],
  notaccept: ["invalid_domain"],
  mailboxfull: ["mailbox_full"],
  suspend: ["inactive_mailbox"],
  mesgtoobig: ["message_too_large"],
  exceedlimit: ["message_too_large"],
  spamdetected: ["spam_content", "attachment_rejected"],
  virusdetected: ["spam_content", "attachment_rejected"],
  contenterror: ["spam_content", "attachment_rejected"],
  blocked: ["reputation_block"],
  badreputation: ["reputation_block"],
  requireptr: ["reputation_block"],
  authfailure: ["authentication_failed"],
  policyviolation: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  securityerror: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  rejected: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  norelaying: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  notcompliantrfc: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  syntaxerror: ["recipient_policy", "invalid_sender", "relay_denied", "protocol_error"],
  toomanyconn: ["rate_limited"],
  speeding: ["rate_limited"],
  expired: ["message_expired", "connection_failed", "tls_failure"],
  networkerror: ["message_expired", "connection_failed", "tls_failure"],
  failedstarttls: ["message_expired", "connection_failed", "tls_failure"],
  systemerror: ["receiver_error"],
  systemfull: ["receiver_error"],
  mailererror: ["receiver_error"],
};

interface Label {
  file: string;
  status: string;
  code: string;
  reason: string;
  hard: boolean;
  feedback: string;
}

const labels = readFileSync(join(folder, "bounces-expected.tsv"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#") && !line.startsWith("file\t"))
  .map((line): Label => {
    const [file = "", , status = "", code = "", reason = "", hard = "", feedback = ""] = line.split("\t");
    return { file, status, code, reason, hard: hard === "1", feedback };
  });
const byFile = Map.groupBy(labels, ({ file }) => file);

/**
 * As the inbound port passes a bounce on: to a recipient's own return path, from the null sender. The mails that are
 * no bounces are judged by what they hold, and once more as if they had come so.
 */
const came = { nullSender: true, ownReturnPath: true, subjects: [] };

let slowestMs = 0;
let slowestFile = "";
const crashes: string[] = [];
function read(kind: string, file: string, context = kind === "bounces" ? came : {}): Returned {
  return readBytes(readFileSync(join(folder, kind, file)), `${kind}/${file}`, context);
}

function readBytes(bytes: Buffer, name: string, context: Partial<ReturnContext> = came): Returned {
  const began = performance.now();
  try {
    return readReturned(bytes, context);
  } catch (error) {
    crashes.push(`${name}: ${String(error)}`);
    return { kind: "nothing", why: "crash" };
  } finally {
    const took = performance.now() - began;
    if (took > slowestMs) [slowestMs, slowestFile] = [took, name];
  }
}

// Each file twice: the first run of a regular expression is compiled, as in a daemon only once.
for (const file of readdirSync(join(folder, "bounces"))) read("bounces", file);
slowestMs = 0;

const hits = new Map<string, { tp: number; fp: number; fn: number; support: number }>();
const hit = (name: string) => {
  const row = hits.get(name) ?? { tp: 0, fp: 0, fn: 0, support: 0 };
  hits.set(name, row);
  return row;
};
const wrong: string[] = [];
const usedRules = new Map<string, Set<string>>();
const machine = { mails: 0, right: 0 };
const suppress = { falsely: 0, soft: 0, missed: 0, hard: 0 };
const complaints = { found: 0, wanted: 0 };

for (const [file, rows] of byFile) {
  const bytes = readFileSync(join(folder, "bounces", `${file}.eml`), "latin1");
  const answer = read("bounces", `${file}.eml`);
  const failures: Failure[] = answer.kind === "bounce" ? answer.failures : [];
  const wantsComplaint = rows.some(
    (r) => r.feedback !== "" && r.feedback !== "auth-failure" && r.feedback !== "not-spam",
  );
  if (wantsComplaint) {
    complaints.wanted += 1;
    if (answer.kind === "complaint") complaints.found += 1;
    else wrong.push(`complaint missed    ${file}`);
  }
  const bounced = rows.filter(({ reason }) => !["feedback", "vacation", "delivered"].includes(reason));
  if (bounced.length === 0) {
    if (failures.length > 0) wrong.push(`no bounce, but taken ${file}`);
    continue;
  }
  const late = answer.kind === "nothing" && (answer.why === noFailure || answer.why === delayWarning);
  if (/^content-type:[ \t]*message\/(?:global-)?delivery-status/im.test(bytes)) {
    if (late) {
      if (!/^[ \t]*action:[ \t]*(?:delayed|expanded|relayed|delivered)/im.test(bytes))
        wrong.push(`a failure taken for late ${file}`);
    } else {
      machine.mails += 1;
      const problem = machineProblem(bytes, bounced, failures);
      if (problem === null) machine.right += 1;
      else wrong.push(`status or code      ${file} ${problem}`);
    }
  }
  for (const [index, label] of bounced.entries()) {
    const failure = failures[index] ?? failures[0];
    const scored = reasons[label.reason] ?? null;
    const suppressed = failure !== undefined && failureSuppresses(failure);
    if (label.hard && !late) {
      suppress.hard += 1;
      if (!suppressed) {
        suppress.missed += 1;
        wrong.push(`missed              ${file} ${describe(failure)}`);
      }
    } else if (!label.hard && scored !== null && !(label.reason === "suspend")) {
      suppress.soft += 1;
      if (suppressed) {
        suppress.falsely += 1;
        wrong.push(`FALSE SUPPRESSION   ${file} ${label.reason} ${describe(failure)}`);
      }
    }
    if (scored === null || late) continue;
    const found = failure ? classifyFailure(failure) : "unclassified";
    const rule = failure ? ruleOf(replyOf(failure)) : null;
    if (rule) usedRules.set(rule, (usedRules.get(rule) ?? new Set()).add(file));
    const wanted = scored[0] ?? "unclassified";
    const right = scored.includes(found);
    hit(wanted).support += 1;
    if (right) hit(wanted).tp += 1;
    else {
      hit(wanted).fn += 1;
      hit(classOf(found)).fp += 1;
      wrong.push(`class               ${file} ${label.reason} wanted ${wanted}, is ${describe(failure)}`);
    }
  }
}

/** The first of the classes that a label may mean stands for them all. */
function classOf(found: Classification): string {
  return Object.values(reasons).find((names) => names?.includes(found))?.[0] ?? found;
}

function describe(failure: Failure | undefined): string {
  return failure
    ? `${classifyFailure(failure)} [${failure.code} ${failure.status} ${ruleOf(replyOf(failure))}] ${failure.text.slice(0, 150)}`
    : "nothing found";
}

function machineProblem(bytes: string, rows: Label[], failures: Failure[]): string | null {
  const named = [
    ...bytes.matchAll(/^[ \t]*(?:final|original)-recipient[ \t]*:[ \t]*(.*(?:\n[ \t]+.*)*)/gim),
  ].map(([, value = ""]) => value.toLowerCase());
  if (failures.length !== rows.length) return `${rows.length} recipients wanted, ${failures.length} found`;
  for (const [index, label] of rows.entries()) {
    const failure = failures[index];
    if (!failure) return "no recipient";
    if (
      named.length > 0 &&
      !failure.recipients.some((one) => named.some((value) => value.includes(one.toLowerCase())))
    )
      return `recipient ${failure.recipients.join()} is not of ${named.join()}`;
    if (label.code !== "" && String(failure.code) !== label.code)
      return `code ${label.code}, is ${failure.code} ${failure.text.slice(0, 120)}`;
    // X.0.9xx are the labels' own numbers: only their class says something.
    const pseudo = /^\d\.0\.9\d\d$/.test(label.status) || label.status === "";
    if (pseudo ? false : failure.status !== label.status)
      return `status ${label.status}, is ${failure.status} ${failure.text.slice(0, 120)}`;
  }
  return null;
}

// Every mail once more with CR alone as line end, and cut off at three places.
for (const kind of ["bounces", "bounces-not", "bounces-err"])
  for (const file of readdirSync(join(folder, kind))) {
    const bytes = readFileSync(join(folder, kind, file));
    readBytes(
      Buffer.from(bytes.toString("latin1").replace(/\r?\n/g, "\r"), "latin1"),
      `${kind}/${file} with CR`,
    );
    for (const share of [0.3, 0.55, 0.8])
      readBytes(bytes.subarray(0, Math.floor(bytes.length * share)), `${kind}/${file} cut at ${share}`);
  }

let fromOthers = 0;
const takenAtOwn: string[] = [];
for (const kind of ["bounces-not", "bounces-err"])
  for (const file of readdirSync(join(folder, kind))) {
    const answer = read(kind, file);
    if (kind === "bounces-not" && answer.kind !== "nothing") {
      fromOthers += 1;
      wrong.push(`no bounce, but taken ${file}`);
    }
    if (kind === "bounces-not" && read(kind, file, came).kind !== "nothing") takenAtOwn.push(file);
  }

const scores = [...hits]
  .filter(([, { support }]) => support >= 5)
  .map(([name, { tp, fp, fn, support }]) => {
    const f1 = tp === 0 ? 0 : (2 * tp) / (2 * tp + fp + fn);
    return { name, support, tp, fp, fn, f1 };
  });
const macro = scores.reduce((sum, { f1 }) => sum + f1, 0) / scores.length;
const percent = (part: number, whole: number) =>
  `${((100 * part) / Math.max(1, whole)).toFixed(1)} % (${part}/${whole})`;
const rows: [string, string, string, boolean][] = [
  [
    "recipient, status and code right",
    percent(machine.right, machine.mails),
    ">= 97 %",
    machine.right / machine.mails >= 0.97,
  ],
  [
    "false suppressions",
    percent(suppress.falsely, suppress.soft),
    "<= 1 %",
    suppress.falsely / suppress.soft <= 0.01,
  ],
  [
    "missed suppressions",
    percent(suppress.missed, suppress.hard),
    "<= 10 %",
    suppress.missed / suppress.hard <= 0.1,
  ],
  ["classes, macro-F1", macro.toFixed(3), ">= 0.85", macro >= 0.85],
  [
    "complaints found",
    `${complaints.found}/${complaints.wanted}`,
    "all",
    complaints.found === complaints.wanted,
  ],
  [
    "events from mails that are none",
    String(fromOthers + wrong.filter((line) => line.startsWith("no bounce")).length - fromOthers),
    "0",
    !wrong.some((line) => line.startsWith("no bounce")),
  ],
  ["of these, if sent to an own return path", `${takenAtOwn.length} ${takenAtOwn.join()}`, "-", true],
  ["crashes", String(crashes.length), "0", crashes.length === 0],
  ["slowest mail", `${slowestMs.toFixed(1)} ms (${slowestFile})`, "< 100 ms", slowestMs < 100],
];
for (const [name, value, target, ok] of rows)
  console.log(`${ok ? "ok  " : "MISS"} ${name.padEnd(34)} ${value.padEnd(40)} ${target}`);
console.log("\nclass                   mails  right  F1");
for (const { name, support, tp, f1 } of scores.toSorted((a, b) => b.support - a.support))
  console.log(
    `${name.padEnd(22)} ${String(support).padStart(6)} ${String(tp).padStart(6)}  ${f1.toFixed(3)}`,
  );
const single = [...usedRules]
  .filter(([, files]) => files.size === 1)
  .map(([rule, files]) => `${rule} (${[...files].join()})`);
console.log(`\nrules that decide a single mail of this folder: ${single.length}`);
for (const line of single.toSorted()) console.log(`  ${line}`);
if (list) for (const line of wrong.toSorted()) console.log(line);
process.exitCode = rows.every(([, , , ok]) => ok) ? 0 : 1;
