// Classifies an SMTP reply. The enhanced status decides the cause first, then the receiver's wording, then the basic code
// (bounce-rules.ts); the first digit of the reply code alone decides temporary or permanent.
import type { Classification } from "../model/classification.ts";
import {
  aboutSender,
  codes,
  exact,
  shared,
  stated,
  subjects,
  vague,
  wording,
  type Row,
} from "./bounce-rules.ts";

const exactIndex = new Map(exact.map((row) => [row[0], verdictOf(`status ${row[0]}`, row[1], row[2])]));
const sharedIndex = new Map(
  shared.map(([key, wordsThat, means, why]) => [
    key,
    { wordsThat, means: verdictOf(`status ${key}`, means, why) },
  ]),
);
const codeIndex = new Map(codes.map((row) => [row[0], verdictOf(`code ${row[0]}`, row[1], row[2])]));
/** Words that name a cause and outweigh a status of a bad address: the worse error would be to suppress. */
const outweighing: ReadonlySet<Classification> = new Set([
  "reputation_block",
  "mailbox_full",
  "rate_limited",
  "message_too_large",
  "spam_content",
  "authentication_failed",
  "greylisted",
  "receiver_error",
  "routing_error",
]);
/**
 * Settled statuses that some receivers use for other refusals, too. They give way to the same words: Microsoft and
 * others give 5.7.5 for a DMARC policy, content filters 5.7.2 and 5.7.10, and 4.4.2 and 4.4.5 come for any temporary
 * refusal.
 */
const severalUses: ReadonlySet<string> = new Set(["X X.7.2", "X X.7.5", "X X.7.10", "X X.4.2", "X X.4.5"]);
const suppressing: ReadonlySet<Classification> = new Set([
  "invalid_recipient",
  "invalid_domain",
  "inactive_mailbox",
]);

type AskedReply = { code: number; status: string | null; text: string };
interface Verdict {
  classification: Classification;
  /** The row that decided and its reason, for people. */
  rule: string;
}

/** The cause of a failed attempt. Never throws: an unknown reply is `unclassified`. */
export function classifyReply(reply: AskedReply): Classification {
  return judge(reply).classification;
}

/**
 * RFC 5321 §4.5.3.1.10: a 552 to RCPT for too many recipients is to be taken for a 452. It is the one permanent code
 * that is temporary. The caller says no more than the reply where it does not know what the reply answers.
 */
export function isTooManyRecipients({
  code,
  status,
  text,
}: Omit<AskedReply, "code"> & { code: number | null }): boolean {
  if (code !== 552 || answersOther.test(text.slice(0, 2_000))) return false;
  if (status !== null && !vagueStatus.test(status)) return /^[45]\.5\.3$/.test(status);
  return /too many recipients/i.test(text.slice(0, 2_000));
}

/** What a report says of a reply that was none to RCPT. */
const answersOther = /\bin reply to (?:end of )?(?:data|mail|ehlo|helo)\b/i;
/** X.0.0 names no cause (RFC 3463 §3.1). */
const vagueStatus = /^\d\.0\.0$/;

/** True where the words of a reply name no cause: its code and status are all there is. */
export function saysNothing(text: string): boolean {
  return firstSaid(wording, text) === null;
}

/** The row of these tables that decides, and why it stands there; for `svc bounces explain` and measurements. */
export function ruleOf(reply: AskedReply): string {
  return judge(reply).rule;
}

function judge(reply: AskedReply): Verdict {
  const verdict = judgedByTables(reply);
  if (!suppressing.has(verdict.classification)) return verdict;
  return firstSaid(aboutSender, reply.text) ?? verdict;
}

function judgedByTables(reply: AskedReply): Verdict {
  const said = firstSaid(wording, reply.text);
  if (reply.status === null) return said ?? bareVerdict(reply);
  const keys = lookupKeys(reply.code, reply.status);
  for (const key of keys) {
    const settled = exactIndex.get(key);
    if (settled === undefined) continue;
    const doubted = suppressing.has(settled.classification) || severalUses.has(key);
    return doubted && said !== null && outweighing.has(said.classification) ? said : settled;
  }
  const meant = statedBeside(reply);
  if (meant !== null) return meant;
  const key = keys.find((one) => sharedIndex.has(one)) ?? "";
  const mixed = sharedIndex.get(key);
  const blocked = refusedForRate(reply, said);
  if (blocked !== null) return blocked;
  if (mixed !== undefined) {
    if (said?.classification === "invalid_recipient" && plainlyUnknown(reply)) return said;
    const usable = said !== null && (mixed.wordsThat === "any" || !suppressing.has(said.classification));
    return usable ? said : mixed.means;
  }
  const subject = subjects[reply.status.split(".")[1] ?? ""];
  if (subject !== undefined)
    return said !== null && !suppressing.has(said.classification)
      ? said
      : { classification: subject, rule: `status ${reply.status}: its subject` };
  return said ?? bareVerdict(reply);
}

function statedBeside({ status, text }: AskedReply): Verdict | null {
  const detail = status?.replace(/^\d/, "X");
  const rows = stated.filter(([key]) => key === detail);
  if (rows.length === 0) return null;
  const lower = judgedText(text);
  const row = rows.find(([, words]) => words.test(lower));
  return row ? verdictOf(`status ${row[0]} with words ${row[1].source}`, row[2], row[3]) : null;
}

/** A permanent refusal for reasons of policy (X.7.Z) is a block, whatever rate it names as its reason. */
function refusedForRate({ code, status }: AskedReply, said: Verdict | null): Verdict | null {
  if (said?.classification !== "rate_limited" || code < 500 || !status?.startsWith("5.7.")) return null;
  return verdictOf(`status ${status}`, "reputation_block", `permanent, where the ${said.rule}`);
}

const plainly =
  /\b(?:no such (?:user|mailbox|recipient|account)|(?:user|recipient) (?:is )?(?:unknown|not found|does not exist|doesn't exist)|(?:unknown|invalid|nonexistent|non-existent) (?:user|recipient|mailbox))\b/;
const otherwise =
  /block|spam|polic|denied|\bban|reputation|black|\blist|\bmay\b|\bor\b|sender|relay|authenti|authori[sz]|\bif\b/;

/** 5.7.1 is what some servers give for every refusal: beside it only plain words about the recipient count. */
function plainlyUnknown({ status, text }: AskedReply): boolean {
  const lower = judgedText(text);
  return status === "5.7.1" && plainly.test(lower) && !otherwise.test(lower);
}

function bareVerdict(reply: AskedReply): Verdict {
  return (
    firstSaid(vague, reply.text) ??
    codeIndex.get(reply.code) ?? { classification: "unclassified", rule: "no rule matches this text" }
  );
}

function verdictOf(row: string, classification: Classification, why: string): Verdict {
  return { classification, rule: `${row}: ${why}` };
}

/** `550 5.1.1`, `550 X.1.1`, `X 5.1.1`, `X X.1.1`: the most particular first. */
function lookupKeys(code: number, status: string): string[] {
  const anyClass = status.replace(/^\d/, "X");
  return [`${code} ${status}`, `${code} ${anyClass}`, `X ${status}`, `X ${anyClass}`];
}

function firstSaid(rows: readonly Row<RegExp>[], text: string): Verdict | null {
  const lower = judgedText(text);
  const row = rows.find(([words]) => words.test(lower));
  return row ? { classification: row[1], rule: `words ${row[0].source}: ${row[2]}` } : null;
}

/** Lower case; of addresses only that there is one, for `<spam@far.test>: user unknown` speaks of no spam. */
function judgedText(text: string): string {
  return text
    .slice(0, 2_000)
    .toLowerCase()
    .replace(
      /(?<![^\s<>"'(),;:[\]=])[^\s<>"'(),;:[\]=@]{1,64}@[a-z0-9.[\]_-]{1,255}|<[a-z0-9._+-]{1,64}>/g,
      "@",
    );
}
