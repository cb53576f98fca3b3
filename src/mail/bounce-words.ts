// Which words of a bounce's part for people may decide its cause: a reply that the report quotes, words that it marks
// as the other server's, or, where it quotes nothing, its statement about the failed address. Everything else in that
// part decides nothing: fields of our own message, lists of possible reasons, advice. RFC 3464 §2 gives the text for
// people no meaning of its own. Whether a mail is a bounce at all is bounce-text.ts's.
import { classifyReply, saysNothing } from "./classify.ts";
import { oneLine, quotedReply, replyStart, type QuotedReply } from "./reply-text.ts";

const maxParagraphs = 200;
const longestParagraph = 4_000;
/** A shorter subject may be a word that replies use, too. */
const shortestSubject = 6;
const longestSubject = 1_000;
const longestLine = 400;
const noReply: QuotedReply = { code: null, status: null, adjacent: false, text: "" };

const ownField =
  /^([ \t>|]*)(?:subject|to|cc|bcc|from|sent|date|message-id|betreff|an|von|gesendet|datum|objet|asunto|assunto|oggetto|para|件名)[ \t]*:/i;
const subjectField =
  /^[ \t>|]*(?:re|aw|fwd?|wg|tr|subject|betreff|objet|asunto|assunto|oggetto|件名)[ \t]*:/i;
/** `Your message "…" could not be delivered`: the quotation is the customer's. */
const quotedTitle =
  /\b(?:subject|message|e?-?mail|titled|entitled|regarding)\b(?:[^"“«\n]{0,40}["“«][^"”»\n]{0,300}["”»]|\s{0,3}['‘][^'’\n]{0,300}['’])/gi;
/** `this message: "550 …"` quotes a reply, `your message "550 …"` our title. */
const quotesReply = /^(?!subject|titled|entitled|regarding)[^"“«'‘]{0,60}["“«'‘]\s{0,3}[45]\d\d(?=[\s-])/i;
const namesTitle = /\b(?:subject|titled|entitled|regarding)\b/i;
const ownBefore = /\b(?:your|my|our)\s{1,3}(?:original\s{1,3})?$/i;
const saysBefore =
  /\b(?:errors?|this|following|return\w{0,3}|respon\w{1,6}|repl\w{1,4}|said|says|with|gave|got|received)\b/i;
/** Words on one line that mark what follows them as another server's. */
const says =
  /(?:\b(?:said|says|replied|responded|answered)|gave this error|\b(?:server|host|system|error|reason|response|reply)\b[^:\n]{0,60}):/i;
const endsSaying =
  /(?:\b(?:said|says|replied|responded|answered|error|reason|response|reply)|(?:gave|returned|following|this) (?:error|reply|response|reason|message)|\b(?:remote|other|receiving|recipient'?s?|destination) (?:\w{1,10} )?(?:server|host|system)\b[^:\n]{0,60}):[ \t]*$/i;
/** What may stand above a reply that a report quotes as mail programs quote mails. */
const introducesQuotation =
  /(?:said|says|repl\w{1,4}|respon\w{1,6}|answer\w{0,3}|return\w{0,3}|error|reason|server|host|system|fail\w{0,4}|reject\w{0,3}|refus\w{0,3}|because|deliver\w{0,3}|@)[^\n]{0,300}:[ \t]*$/i;
const introducesOurs =
  /\b(?:wrote|schrieb|écrit)\b[^\n]{0,20}:[ \t]*$|\b(?:your|original|sent) (?:e-?mail|message|text)(?: \w{1,10}){0,3}:[ \t]*$/i;
/** A line that quotes our message; `>>>` is a transcript's. */
const quotedLine = /^[ \t]*>(?!>>)/;
const quotedReplyLine = /^[ \t]*>[ \t>]*[45][0-5]\d[ -]/;

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
  let quotesServer = false;
  for (const [at, line] of lines.entries()) {
    const indent = /^[ \t>|]*/.exec(line)?.[0].length ?? 0;
    if (at > 0 && line.length <= longestIntroduction && introduction.test(line)) break;
    if (quotedLine.test(line)) {
      quotesServer ||= quotedReplyLine.test(line) && introducesReply(lines[at - 1] ?? "");
      if (quotesServer) kept.push(line.replace(/^[ \t]*>[ \t]?/, ""));
      continue;
    }
    quotesServer = false;
    const folded = inSubject >= 0 && indent > inSubject && line.trim() !== "" && !ownField.test(line);
    if (folded) continue;
    inSubject = subjectField.test(line) ? indent : -1;
    // A lone `To:` may name whom it failed for; beside other fields it is our message's.
    const besideFields = ownField.test(lines[at - 1] ?? "") || ownField.test(lines[at + 1] ?? "");
    if (inSubject < 0 && !(ownField.test(line) && besideFields)) kept.push(line);
  }
  return withoutReasonLists(withoutSubjects(kept, subjects));
}

function introducesReply(line: string): boolean {
  const end = line.slice(-400);
  return introducesQuotation.test(end) && !introducesOurs.test(end);
}

/**
 * The subject is cut where it stands as a title: in quotation marks, behind a label, or on a line of its own. Within a
 * reply and behind the mark of one nothing is cut: the words that are left would be none that a server sent.
 */
function withoutSubjects(lines: readonly string[], subjects: readonly string[]): string {
  const words = [...new Set(subjects.map((one) => one.trim().slice(0, longestSubject)))]
    // An address alone may be whom the bounce is about.
    .filter((one) => one.length >= shortestSubject && !/^\S+@\S+$/.test(one))
    .map((one) => one.split(/\s+/).map(escaped).join("\\s+"));
  const inLine = words.map(
    (one) =>
      new RegExp(
        `["“”„«'‘(\\[][ \\t]{0,3}${one}[ \\t]{0,3}["”“»'’)\\]]|\\b(?:subject|betreff|objet|asunto|assunto|oggetto|titled|entitled)\\b[ \\t:=]{0,4}${one}`,
        "gi",
      ),
  );
  let inReply = false;
  const titled = lines.map((line) => {
    const continues = inReply && /^[ \t]/.test(line) && line.trim() !== "";
    const from = continues ? 0 : replyStart(line);
    inReply = from >= 0;
    return continues ? line : withoutTitles(line, from, inLine);
  });
  let text = titled.join("\n");
  for (const one of words) {
    const alone = new RegExp(`^[ \\t>|*"“„«'-]*${one}[ \\t"”»'.:]*$`, "gim");
    text = text.replace(alone, (found, at: number) => (answersLineAbove(text, at) ? found : " "));
  }
  return text;
}

function withoutTitles(line: string, start: number, subjects: readonly RegExp[]): string {
  const isReply = (found: string, at: number): boolean =>
    (start >= 0 && at >= start) || isQuotedReply(found, line.slice(Math.max(0, at - 60), at));
  let rest = line.replace(quotedTitle, (found, at: number) => (isReply(found, at) ? found : " "));
  if (subjects.length === 0) return rest;
  const said = says.exec(rest.slice(0, longestParagraph));
  const marked = said !== null && !namesTitle.test(said[0]) ? said.index + said[0].length : -1;
  const first = [rest === line ? start : replyStart(rest), marked].filter((at) => at >= 0);
  for (const subject of subjects)
    rest = rest.replace(subject, (found, at: number) => (first.some((one) => at >= one - 1) ? found : " "));
  return rest;
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
}

function isQuotedReply(found: string, before: string): boolean {
  if (!quotesReply.test(found) || namesTitle.test(found) || ownBefore.test(before)) return false;
  return saysBefore.test(before) || saysBefore.test(found.slice(0, found.search(/["“«'‘]/)));
}

/** The line above is a reply that goes on here, or says that one follows. */
function answersLineAbove(text: string, at: number): boolean {
  const above = text.slice(Math.max(0, at - 1 - longestLine), Math.max(0, at - 1));
  const line = above.slice(above.lastIndexOf("\n") + 1);
  return endsSaying.test(line) || (/^[ \t]/.test(text.slice(at, at + 1)) && replyStart(line) >= 0);
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
  /(?<!\bfor )(?:common|possible|likely|typical|frequent|usual|several|some|many|various) (?:\w{1,20} )?(?:reasons?|causes?|explanations?)|reasons? (?:may|might|can|could|include|are)|(?:one|any|some) of the following(?! (?:\w{1,20} )?(?:recipients?|address(?:es)?|mailbox(?:es)?|users?|people)\b)|(?:may|might|can|could|usually|often|typically|generally|commonly|normally|sometimes)(?: be| is| are)? caused by|(?:happens?|occurs?) (?:by|when|if|because)|what (?:can|should|could) (?:i|you) do|how to (?:fix|solve|resolve)|(?:error|status|reply|response) codes\b(?! (?:\w{1,10} )?(?:return|given|receiv|report|from)|:? *\n? *[45]\d\d\b[^\n]*$)|codes? (?:and (?:what|their|its|the)\b|mean)|what .{0,40}\bmeans?\b|meanings?\b|why (?:did|was|has|is) /i;
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
/** No statement: a question, a denial, what is temporary. */
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

/**
 * Without the lists of what may be the reason and the tables of codes that help texts have. One reply below such a
 * heading is what the server said; several that mean different things are a table.
 */
function withoutReasonLists(text: string): string {
  const kept: string[] = [];
  let list: string[] | null = null;
  const close = (): void => {
    if (list !== null) kept.push(...onlyReply(list));
    list = null;
  };
  for (const paragraph of text.split(/\n[ \t]*\n+/)) {
    const searched = paragraph.slice(0, longestParagraph);
    const opening = Math.max(searched.search(reasonList), searched.search(foreignReasonList));
    if (list !== null && opening < 0 && backToFacts.test(paragraph)) close();
    if (opening >= 0) {
      const start = lineStart(paragraph, opening);
      kept.push(paragraph.slice(0, start));
      list ??= [];
      list.push(paragraph.slice(start));
    } else if (list !== null) list.push(paragraph);
    else kept.push(paragraph);
  }
  close();
  return kept.join("\n\n");
}

/** The lines of a list's replies and addresses if all its replies mean the same, else nothing. */
function onlyReply(paragraphs: readonly string[]): string[] {
  const causes = new Set<string>();
  const found: string[] = [];
  for (const paragraph of paragraphs) {
    const lines = paragraph.split("\n");
    const starts = lines.map((line) => (explains.test(line) ? -1 : replyStart(line)));
    const first = starts.findIndex((at) => at >= 0);
    if (first < 0) continue;
    for (const [at, line] of lines.entries()) {
      const continues = /^\W*[45]\d\d-/.test(lines[at - 1] ?? "");
      const start = starts[at] ?? -1;
      if (start >= 0 && !continues) causes.add(causeOf(line.slice(start)));
    }
    found.push(lines.filter((line, at) => at >= first || line.includes("@")).join("\n"));
  }
  causes.delete("unclassified");
  return causes.size > 1 ? [] : found;
}

/** A code that a help text explains. */
const explains = /\bmeans?\b|\bmeanings?\b/i;

function causeOf(reply: string): string {
  const { code, status, text } = quotedReply(reply);
  return classifyReply({ code: code ?? 0, status, text });
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at) + 1;
}

function sentences(paragraph: string): string[] {
  return paragraph
    .split(/\n(?=[ \t]*(?:[-*•·]|\d{1,2}[.)])[ \t])/)
    .flatMap((piece) => piece.replace(/\s+/g, " ").split(/(?<=[.!?;])\s/));
}
