// Which words of a bounce's part for people may decide its cause: a reply that the report quotes, words that it marks
// as the other server's, or, where it quotes nothing, its statement about the failed address. Everything else in that
// part decides nothing: fields of our own message, lists of possible reasons, advice. RFC 3464 §2 gives the text for
// people no meaning of its own. Whether a mail is a bounce at all is bounce-text.ts's.
import { classifyReply, saysNothing } from "./classify.ts";
import { oneLine, quotedReply, type QuotedReply } from "./reply-text.ts";

const maxParagraphs = 200;
const longestParagraph = 4_000;
/** A shorter subject may be a word that replies use, too. */
const shortestSubject = 6;
const noReply: QuotedReply = { code: null, status: null, adjacent: false, text: "" };

const ownField =
  /^([ \t>|]*)(?:subject|to|cc|bcc|from|sent|date|message-id|betreff|an|von|gesendet|datum|objet|asunto|assunto|oggetto|para|件名)[ \t]*:/i;
const subjectField =
  /^[ \t>|]*(?:re|aw|fwd?|wg|tr|subject|betreff|objet|asunto|assunto|oggetto|件名)[ \t]*:/i;
/** `Your message "…" could not be delivered`: the quotation is the customer's. */
const quotedTitle =
  /\b(?:subject|message|e?-?mail|titled|entitled|regarding)\b(?:[^"“«\n]{0,40}["“«][^"”»\n]{0,300}["”»]|\s{0,3}['‘][^'’\n]{0,300}['’])/gi;
/** A line that quotes our message; `>>>` is a transcript's. */
const quotedLine = /^[ \t]*>(?!>>)/;

const originalWords =
  "(?:original (?:e-?mail|message|mail)(?: (?:text|body|contents?))?|(?:urspr.{1,2}ngliche|originale?) (?:nachricht|e-?mail)|message (?:d['’]origine|original|initial)|mensaje original|messaggio originale|mensagem original|исходное сообщение|原始邮件|原邮件|元の?メッセージ|oorspronkelijk bericht|(?:wiadomo.{1,2} oryginalna|oryginalna wiadomo.{1,2}))";
const ownWords =
  "(?:(?:here is |this is |a |the |first |few |lines |text |body |contents? |copy |excerpt |of ){0,9}(?:the |your )?(?:original |quoted |sent )?(?:message|mail|e-?mail)(?: (?:you sent|text|body|contents?|follows|was|is|reads?|said)){0,2}|you wrote|on [^\\n]{1,80} wrote|excerpt|ihre (?:nachricht|e-?mail)|votre message|su mensaje|il (?:suo|tuo) messaggio|sua mensagem|ваше сообщение|您的邮件|uw bericht)";
/** A line that introduces our message and says nothing else; what follows is the customer's. */
const introduction = new RegExp(
  `^[ \\t]*(?:[-=_*#]{2,40}[ \\t]{0,4}(?:${originalWords}|${ownWords})[ \\t]{0,4}:?[ \\t]{0,4}[-=_*#]{2,40}|(?:the |your )?${originalWords}(?: (?:was|is|follows))?[ \\t]{0,4}[::]?|${ownWords}[ \\t]{0,4}[::])[ \\t]*$`,
  "i",
);
const longestIntroduction = 120;

/** The text without what it repeats of the message (fields as Exchange lists them, the subject, quoted lines) and advice. */
export function withoutOurMessage(text: string, subjects: readonly string[]): string {
  const lines = text.split("\n");
  const kept: string[] = [];
  let inSubject = -1;
  for (const [at, line] of lines.entries()) {
    const indent = /^[ \t>|]*/.exec(line)?.[0].length ?? 0;
    if (at > 0 && line.length <= longestIntroduction && introduction.test(line)) break;
    if (quotedLine.test(line)) continue;
    const folded = inSubject >= 0 && indent > inSubject && line.trim() !== "" && !ownField.test(line);
    if (folded) continue;
    inSubject = subjectField.test(line) ? indent : -1;
    // A lone `To:` may name whom it failed for; beside other fields it is our message's.
    const besideFields = ownField.test(lines[at - 1] ?? "") || ownField.test(lines[at + 1] ?? "");
    if (inSubject < 0 && !(ownField.test(line) && besideFields)) kept.push(line);
  }
  let rest = withoutReasonLists(kept.join("\n").replace(quotedTitle, " "));
  for (const subject of subjects) {
    const words = subject.trim();
    if (words.length >= shortestSubject) rest = rest.replaceAll(words, " ");
  }
  return rest;
}

/** A reply that names another address is about that one; which may be the sender's, whom the bounce is sent to. */
const bracketed = /<([^<>\s@]{1,200}@[^<>\s@]{1,255})>/g;

const bare = /(?<![^\s<>"'(),;:[\]=])[^\s<>"'(),;:[\]=@]{1,64}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,63}/gi;

/** The first reply in a text that a report has for people, if it is about one of some addresses; else all null. */
export function transcriptReply(text: string, recipients: readonly string[]): QuotedReply {
  const reply = quotedReply(text, "transcript");
  if (reply.code === null) return noReply;
  const head = reply.text.slice(0, 300);
  const named = [...head.matchAll(bracketed)].map(([, one = ""]) => one);
  return isAbout(`${reply.lead ?? ""}\n${head.slice(0, 60)}`, recipients, named) ? reply : noReply;
}

/** No address is named, or one of those that are asked for. */
function isAbout(text: string, recipients: readonly string[], also: readonly string[] = []): boolean {
  const named = [...also, ...[...text.matchAll(bare)].map(([one]) => one)].map((one) => one.toLowerCase());
  const wanted = new Set(recipients.map((one) => one.toLowerCase()));
  return named.length === 0 || wanted.size === 0 || named.some((one) => wanted.has(one));
}

const marked =
  /(?:gave this error|(?:remote|other|recipient'?s?|receiving|destination)(?: mail| smtp)? (?:server|host|system)[^:\n]{0,60}|(?:error|reason|response) (?:returned|given|received|reported)[^:\n]{0,60}|\bsaid):[ \t]*\n?([^\n]{3,500}(?:\n[ \t]*\S[^\n]{0,500}){0,3})/i;

/** Words that a report marks as another server's, where they have no code. */
export function markedWords(text: string, recipients: readonly string[]): string {
  const searched = text.slice(0, 20_000);
  const found = marked.exec(searched);
  if (!found) return "";
  const before = searched
    .slice(Math.max(0, found.index - 400), found.index)
    .split(/\n[ \t]*\n/)
    .at(-1);
  const words = oneLine(found[1] ?? "");
  // What begins with a code is a reply: transcriptReply has judged it.
  return /^[45]\d\d\b/.test(words) || !isAbout(`${before}${found[0]}`, recipients) ? "" : words;
}

const reasonList =
  /(?:common|possible|likely|typical|frequent|usual|several|some|many|various) (?:\w{1,20} )?(?:reasons?|causes?|explanations?)|reasons? (?:may|might|can|could|include|are)|(?:one|any|some) of the following|(?:caused|happens?|occurs?) (?:by|when|if|because)|what (?:can|should|could) (?:i|you) do|how to (?:fix|solve|resolve)|(?:error|status|reply|response) codes\b|codes? (?:and|mean)|what .{0,40}\bmeans?\b|meanings?\b|why (?:did|was|has|is) /i;
/** The same in other languages that servers write. */
const foreignReasonList =
  /m.{1,2}gliche \p{L}{0,12} ?(?:gr.{1,2}nde|ursachen)|(?:raisons?|causes?|causas|cause) (?:possibles?|posibles|possibili|poss.{1,2}veis)|(?:posibles|possibili|poss.{1,2}veis) (?:causas|cause|razones|motivos|motivi|ragioni|raz.{1,2}es)|возможн\p{L}{1,3} причин|可能的?原因|原因として|考えられる原因|mogelijke (?:oorza|reden)|możliwe (?:przyczyn|powod)/iu;
/** What ends a list of reasons: the report comes back to an address, or to a server's words. */
const backToFacts = /@|<<<|\bsaid:|\breturned\b/;
/** Sentences that suppose, advise or offer a choice. */
const supposes =
  /\b(?:(?<!\d )may(?! \d)|might|maybe|perhaps|possibl[ey]|probabl[ey]|likely|could (?:be|have|also)|can be|if|whether|or|either|unless|please|check|make sure|ensure|verify|try (?:to|re-?send|sending|again later)|contact|for (?:more|further|additional|help|assistance)|e\.g\.|for example|such as|usually|often|sometimes|typically|normally|note that|help|cases?)\b/i;

const supposesElsewhere =
  /(?<!\p{L})(?:kann (?:daran|sein|auch|es)|könnte|möglicherweise|vielleicht|eventuell|vermutlich|oder|falls|bitte|peut-?être|il est possible|ou|veuillez|es posible que|puede (?:ser|que)|quizás?|tal vez|por favor|forse|potrebbe|oppure|talvez|pode (?:ser|estar)|возможно|может|вероятно|или|пожалуйста|misschien|mogelijk|może|lub)(?!\p{L})|可能|或者?|请|請|または|かもしれ|おそらく/iu;
/** No statement: a question, a denial, what holds for the moment. */
const denies = /\?\s*$|\bnot (?:unknown|disabled|invalid|suspended|closed|inactive)\b|\bfor now\b/i;

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
  const said = around.flatMap((one) => sentences(one.slice(0, longestParagraph)).filter(states));
  const telling = said.filter((one) => !saysNothing(one));
  const causes = new Set(telling.map((text) => classifyReply({ code: 0, status: null, text })));
  // Statements of several causes are a list of what may be.
  if (causes.size > 1) return oneLine(said.filter((one) => saysNothing(one)).join(" "));
  return oneLine((telling.length > 0 ? telling : said).join(" "));
}

/** An address alone states nothing. */
function states(sentence: string): boolean {
  const words = sentence.replace(/[^\s@]{1,64}@[^\s@]{1,255}/g, " ");
  if (!/\p{L}{2}/u.test(words) || denies.test(words)) return false;
  const plain = words.replace(noChoice, "$1");
  return !supposes.test(plain) && !supposesElsewhere.test(plain);
}

/** The same where a report names whom it is about: only what stands in one paragraph with the address. */
export function statementBeside(text: string, recipients: readonly string[]): string {
  const wanted = recipients.map((one) => one.toLowerCase());
  const beside = text
    .split(/\n[ \t]*\n+/, maxParagraphs)
    .filter((one) => wanted.some((name) => one.toLowerCase().includes(name)));
  return statementAbout(beside.join("\n\n"), recipients);
}

/** Without the lists of what may be the reason and the tables of codes that help texts have. */
function withoutReasonLists(text: string): string {
  const kept: string[] = [];
  let within = false;
  for (const paragraph of text.split(/\n[ \t]*\n+/)) {
    const searched = paragraph.slice(0, longestParagraph);
    const opening = Math.max(searched.search(reasonList), searched.search(foreignReasonList));
    if (within && opening < 0 && backToFacts.test(paragraph)) within = false;
    if (opening >= 0) kept.push(paragraph.slice(0, lineStart(paragraph, opening)));
    else if (!within) kept.push(paragraph);
    within ||= opening >= 0;
  }
  return kept.join("\n\n");
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at) + 1;
}

function sentences(paragraph: string): string[] {
  return paragraph
    .split(/\n(?=[ \t]*(?:[-*•·]|\d{1,2}[.)])[ \t])/)
    .flatMap((piece) => piece.replace(/\s+/g, " ").split(/(?<=[.!?;])\s/));
}
