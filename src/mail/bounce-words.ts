// Which words of a bounce's part for people may decide its cause: a reply that the report quotes, words that it marks
// as the other server's, or, where it quotes nothing, its statement about the failed address. Everything else in that
// part decides nothing: fields of our own message, lists of possible reasons, advice. RFC 3464 §2 gives the text for
// people no meaning of its own. Whether a mail is a bounce at all is bounce-text.ts's.
import { saysNothing } from "./classify.ts";
import { oneLine, quotedReply, type QuotedReply } from "./reply-text.ts";

const maxParagraphs = 200;
const longestParagraph = 4_000;
/** A shorter subject may be a word that replies use, too. */
const shortestSubject = 6;
const noReply: QuotedReply = { code: null, status: null, adjacent: false, text: "" };

const ownField =
  /^([ \t>|]*)(?:subject|to|cc|bcc|from|sent|date|message-id|betreff|an|von|gesendet|datum|objet|asunto|assunto|oggetto|para|件名)[ \t]*:/i;
const subjectField = /^[ \t>|]*(?:subject|betreff|objet|asunto|assunto|oggetto|件名)[ \t]*:/i;
/** `Your message "…" could not be delivered`: the quotation is the customer's. */
const quotedTitle =
  /\b(?:subject|message|e?-?mail|titled|entitled|regarding)\b[^"“\n]{0,40}["“][^"”\n]{0,300}["”]/gi;

/** The text without what it repeats of the message: its fields as Exchange lists them, its subject. */
export function withoutOurMessage(text: string, subjects: readonly string[]): string {
  const lines = text.split("\n");
  const kept: string[] = [];
  let inSubject = -1;
  for (const [at, line] of lines.entries()) {
    const indent = /^[ \t>|]*/.exec(line)?.[0].length ?? 0;
    const folded = inSubject >= 0 && indent > inSubject && line.trim() !== "" && !ownField.test(line);
    if (folded) continue;
    inSubject = subjectField.test(line) ? indent : -1;
    // A lone `To:` may name whom it failed for; beside other fields it is our message's.
    const besideFields = ownField.test(lines[at - 1] ?? "") || ownField.test(lines[at + 1] ?? "");
    if (inSubject < 0 && !(ownField.test(line) && besideFields)) kept.push(line);
  }
  let rest = kept.join("\n").replace(quotedTitle, " ");
  for (const subject of subjects) {
    const words = subject.trim();
    if (words.length >= shortestSubject) rest = rest.replaceAll(words, " ");
  }
  return rest;
}

/** A reply that names another address is about that one; which may be the sender's, whom the bounce is sent to. */
const bracketed = /<([^<>\s@]{1,200}@[^<>\s@]{1,255})>/g;

/** The first reply in a text that a report has for people, if it is about one of some addresses; else all null. */
export function transcriptReply(text: string, recipients: readonly string[]): QuotedReply {
  const reply = quotedReply(text, "transcript");
  if (reply.code === null) return noReply;
  const named = [...reply.text.slice(0, 300).matchAll(bracketed)].map(([, one = ""]) => one.toLowerCase());
  const wanted = new Set(recipients.map((one) => one.toLowerCase()));
  return named.length === 0 || wanted.size === 0 || named.some((one) => wanted.has(one)) ? reply : noReply;
}

const marked =
  /(?:gave this error|(?:remote|other|recipient'?s?|receiving|destination)(?: mail| smtp)? (?:server|host|system)[^:\n]{0,60}|(?:error|reason|response) (?:returned|given|received|reported)[^:\n]{0,60}|\bsaid):[ \t]*\n?([^\n]{3,500}(?:\n[ \t]*\S[^\n]{0,500}){0,3})/i;

/** Words that a report marks as another server's, where they have no code. */
export function markedWords(text: string): string {
  return oneLine(marked.exec(text.slice(0, 20_000))?.[1] ?? "");
}

const reasonList =
  /(?:common|possible|likely|typical|frequent|usual|several|some|many|various) (?:\w{1,20} )?(?:reasons?|causes?|explanations?)|reasons? (?:may|might|can|could|include|are)|(?:one|any|some) of the following|(?:caused|happens?|occurs?) (?:by|when|if|because)|what (?:can|should|could) (?:i|you) do|how to (?:fix|solve|resolve)/i;
const listItem = /^[ \t]*(?:[-*•·o–]|\(?\d{1,2}[.)]|[a-z][.)])[ \t]/i;
/** Sentences that suppose, advise or offer a choice. */
const supposes =
  /\b(?:(?<!\d )may(?! \d)|might|maybe|perhaps|possibl[ey]|probabl[ey]|likely|could (?:be|have|also)|can be|if|whether|or|either|unless|please|check|make sure|ensure|verify|try (?:to|re-?send|sending|again later)|contact|for (?:more|further|additional|help|assistance)|e\.g\.|for example|such as|usually|often|sometimes|typically|normally|note that|help|cases?)\b/i;

/** Choices that are none: synonyms, and what mail systems always say. */
const noChoice =
  /\bor (?:more|groups?|distribution)\b|\bmx or srv\b|\bexchanger or ip\b|\b(unknown|invalid|disabled|suspended|closed|inactive|discontinued|deactivated|expired|deleted|removed) or (?:has been )?(?:unknown|invalid|disabled|suspended|closed|inactive|discontinued|deactivated|expired|deleted|removed)\b/gi;

/** What a bounce that quotes no reply states of the failed address; empty where it only supposes. */
export function statementAbout(text: string, recipients: readonly string[]): string {
  const paragraphs = text.split(/\n[ \t]*\n+/, maxParagraphs);
  const wanted = recipients.map((one) => one.toLowerCase());
  const lower = paragraphs.map((one) => one.toLowerCase());
  const at = lower.findIndex((one) => wanted.some((name) => one.includes(name)));
  const around = at < 0 ? paragraphs.slice(0, 6) : paragraphs.slice(Math.max(0, at - 4), at + 4);
  const said: string[] = [];
  let listFollows = false;
  for (const paragraph of around.map((one) => one.slice(0, longestParagraph))) {
    const opening = paragraph.search(reasonList);
    if (!(listFollows || (opening >= 0 && listItem.test(paragraph)))) {
      const stated = opening >= 0 ? paragraph.slice(0, lineStart(paragraph, opening)) : paragraph;
      said.push(...sentences(stated).filter(states));
    }
    listFollows = opening >= 0 || (listFollows && listItem.test(paragraph));
  }
  const telling = said.filter((one) => !saysNothing(one));
  return oneLine((telling.length > 0 ? telling : said).join(" "));
}

/** An address alone states nothing. */
function states(sentence: string): boolean {
  const words = sentence.replace(/[^\s@]{1,64}@[^\s@]{1,255}/g, " ");
  return /\p{L}{2}/u.test(words) && !supposes.test(words.replace(noChoice, "$1"));
}

/** The same where a report names whom it is about: only what stands in one paragraph with the address. */
export function statementBeside(text: string, recipients: readonly string[]): string {
  const wanted = recipients.map((one) => one.toLowerCase());
  const beside = text
    .split(/\n[ \t]*\n+/, maxParagraphs)
    .filter((one) => wanted.some((name) => one.toLowerCase().includes(name)));
  return statementAbout(beside.join("\n\n"), recipients);
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at) + 1;
}

function sentences(paragraph: string): string[] {
  return paragraph
    .split(/\n(?=[ \t]*(?:[-*•·]|\d{1,2}[.)])[ \t])/)
    .flatMap((piece) => piece.replace(/\s+/g, " ").split(/(?<=[.!?;])\s/));
}
