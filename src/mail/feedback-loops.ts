// The known feedback loops: who runs them, the words by which their reports are recognized (complaint_source),
// and the domains that they report from (the default of feedback.loops). In several of these domains customers have
// mailboxes, so a report counts as the provider's only if its From is an address that no customer can have: a reserved
// local part, or a host below the provider's domain. feedback/loops.ts verifies it.

interface FeedbackLoop {
  /** `complaint_source` of its reports. */
  source: string;
  /** In the From, the User-Agent, the Reporting-MTA or the subject of a report. */
  words: RegExp;
  /** A-label form; each with everything below it. */
  domains: readonly string[];
}

/** In the order in which the words are tried. */
export const feedbackLoops: readonly FeedbackLoop[] = [
  { source: "yahoo", words: /yahoo/i, domains: ["yahoo.com", "yahooinc.com"] },
  {
    source: "microsoft_jmrp",
    words: /staff@(?:hotmail|outlook)\.com|hotmail|outlook\.com|microsoft|x-hmxmr/i,
    domains: ["outlook.com", "protection.outlook.com", "hotmail.com", "microsoft.com"],
  },
  { source: "comcast", words: /comcast/i, domains: ["comcast.net"] },
  { source: "aol", words: /\baol\b/i, domains: ["aol.com"] },
  { source: "fastmail", words: /fastmail/i, domains: ["fastmail.com", "messagingengine.com"] },
  { source: "rackspace", words: /rackspace/i, domains: ["rackspace.com", "emailsrvr.com"] },
  { source: "mailru", words: /mail\.ru|corp\.mail/i, domains: ["mail.ru"] },
  { source: "yandex", words: /yandex/i, domains: ["yandex.ru", "yandex.net", "yandex.com"] },
  { source: "signal_spam", words: /laposte|signal-spam/i, domains: ["signal-spam.fr", "laposte.net"] },
  { source: "amazon_ses", words: /amazonses/i, domains: ["amazonses.com"] },
  { source: "abusix", words: /abusix/i, domains: ["abusix.com", "abusix.org"] },
  { source: "apple", words: /icloud|apple mail/i, domains: ["icloud.com", "apple.com"] },
  {
    source: "validity",
    words: /senderscore|returnpath|validity|feedbackloop/i,
    domains: ["validity.com", "senderscore.net", "returnpath.net"],
  },
  { source: "google", words: /@(?:[\w.-]+\.)?google\.com/i, domains: ["google.com"] },
  { source: "qq", words: /@(?:[\w.-]+\.)?qq\.com/i, domains: ["qq.com"] },
  { source: "seznam", words: /seznam/i, domains: ["seznam.cz"] },
  { source: "zoho", words: /zoho/i, domains: ["zoho.com"] },
  { source: "cox", words: /@(?:[\w.-]+\.)?cox\.net/i, domains: ["cox.net"] },
];

/** The default of feedback.loops. */
export const feedbackLoopDomains: readonly string[] = feedbackLoops.flatMap(({ domains }) => domains);

/** Local parts that mailbox providers reserve (RFC 2142 and the names that loops report from). */
const reportingNames =
  /^(?:(?:no-?reply-?)?(?:feedback|feedback-?loop|fbl|arf|jmrp|staff|abuse|complaints?|spam-?reports?|reports?)(?:-?no-?reply)?|postmaster|mailer-daemon|no-?reply|do-?not-?reply)$/i;

/** True where `host` is the domain or below it. */
export function isWithin(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** Whether this From can be a loop's own: no customer of these providers has such an address. */
export function isReportingAddress(from: string): boolean {
  const at = from.lastIndexOf("@");
  const host = from.slice(at + 1).toLowerCase();
  return feedbackLoopDomains.some(
    (domain) =>
      (host === domain && reportingNames.test(from.slice(0, Math.max(0, at)))) || host.endsWith(`.${domain}`),
  );
}
