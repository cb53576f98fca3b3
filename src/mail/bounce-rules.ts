// The rules by which a receiver's reply is classified, read from top to bottom (classify.ts). To teach them a reply, add a
// row and its reason. Mind what a row can do: invalid_recipient, invalid_domain and inactive_mailbox make a permanent reply
// a suppression, so a row that leads there needs words that can mean nothing else, and a reply that speaks of its sender
// (aboutSender) never leads there. Over 300 lines: it is data.
// Sources: RFC 3463, RFC 5248 and its IANA registry, RFC 7372, RFC 7505, the receivers' own pages.
import type { Classification } from "../model/classification.ts";

/** One row of a table: what it looks at, what that means, why. */
export type Row<Key> = readonly [Key, Classification, string];

/**
 * Replies whose code and status together have a settled meaning; no wording changes it. `X` stands
 * for any class or code.
 */
export const exact: readonly Row<string>[] = [
  ["556 X.1.10", "invalid_domain", "null MX (RFC 7505 §4.2)"],
  ["X 5.7.28", "reputation_block", "permanent: our address is on a list of the receiver's own"],
  ["X X.7.28", "rate_limited", "mail flood; Gmail: an unusual rate of mail from this address"],
  ["X X.1.1", "invalid_recipient", "the mailbox does not exist"],
  ["X X.1.2", "invalid_domain", "the domain does not exist, or is not served there"],
  ["X X.1.3", "invalid_recipient", "the receiver calls the address malformed"],
  ["X X.1.4", "recipient_policy", "ambiguous: the address may well be right"],
  ["X X.1.6", "invalid_recipient", "the user has moved, and left no forwarding"],
  ["X X.1.7", "invalid_sender", "syntax of our sender address"],
  ["X X.1.8", "invalid_sender", "domain of our sender address"],
  ["X X.2.2", "mailbox_full", "over quota"],
  ["X X.2.3", "message_too_large", "larger than this mailbox takes"],
  ["X X.2.4", "receiver_error", "expansion of a mailing list failed"],
  ["X X.3.1", "receiver_error", "the receiving system is full"],
  ["X X.3.4", "message_too_large", "larger than this system takes"],
  ["X X.3.5", "receiver_error", "misconfigured"],
  ["X X.4.2", "connection_failed", "the connection broke"],
  ["X X.4.3", "dns_failure", "a directory (DNS) that routing needs failed"],
  ["X X.4.5", "receiver_error", "congestion"],
  ["X X.4.6", "routing_error", "a loop"],
  ["X X.4.7", "message_expired", "another server tried until its time was up"],
  ["X X.5.3", "rate_limited", "too many recipients: we name one, so a count over the session or the hour"],
  ["X X.6.6", "receiver_error", "the content could not be fetched"],
  ["X X.6.7", "protocol_error", "no SMTPUTF8 there (RFC 6531)"],
  ["X X.6.8", "protocol_error", "no SMTPUTF8 there (RFC 6531)"],
  ["X X.6.9", "protocol_error", "no SMTPUTF8 there (RFC 6531)"],
  ["X X.7.2", "recipient_policy", "a list that takes no mail from strangers"],
  ["X X.7.5", "tls_failure", "cryptographic failure"],
  ["X X.7.8", "relay_denied", "a smart host refused our login (RFC 4954)"],
  ["X X.7.10", "tls_failure", "encryption needed (RFC 5248)"],
  ["X X.7.17", "invalid_recipient", "the mailbox belongs to someone else now (RFC 7293)"],
  ["X X.7.18", "invalid_recipient", "the domain belongs to someone else now (RFC 7293)"],
  ["X X.7.20", "authentication_failed", "no passing DKIM signature (RFC 7372)"],
  ["X X.7.21", "authentication_failed", "no acceptable DKIM signature (RFC 7372)"],
  ["X X.7.22", "authentication_failed", "no author-matched DKIM signature (RFC 7372)"],
  ["X X.7.23", "authentication_failed", "SPF failed (RFC 7372)"],
  ["X X.7.24", "authentication_failed", "SPF could not be judged (RFC 7372)"],
  ["X X.7.25", "reputation_block", "no valid reverse DNS of our address (RFC 7372)"],
  ["X X.7.26", "authentication_failed", "several of SPF, DKIM, DMARC failed (RFC 7372)"],
  ["X X.7.40", "authentication_failed", "Gmail: no DMARC record or no alignment"],
  ["X X.7.64", "relay_denied", "Microsoft: the tenant does not know the connector"],
  ["X X.7.509", "authentication_failed", "Microsoft: DMARC says reject"],
  ["X X.7.515", "authentication_failed", "Microsoft: bulk senders must pass SPF, DKIM and DMARC"],
  ["X 4.7.500", "rate_limited", "Microsoft: server busy, which is throttling"],
  ["X 4.7.650", "rate_limited", "Microsoft: rate limited for the address's reputation"],
  ["X 4.7.651", "rate_limited", "Microsoft: rate limited for the address's reputation"],
  ["X 5.7.501", "reputation_block", "Microsoft: access denied, spam abuse"],
  ["X 5.7.502", "reputation_block", "Microsoft: access denied, banned sender"],
  ["X 5.7.503", "reputation_block", "Microsoft: access denied, banned sender"],
  ["X 5.7.511", "reputation_block", "Microsoft: access denied, banned sender"],
  ["X 5.7.606", "reputation_block", "Microsoft: access denied, banned address"],
  ["X 5.7.708", "reputation_block", "Microsoft: traffic from this address is not accepted"],
];

/** What the words say. Each is searched in the whole text, in any case; the first match decides. */
export const wording: readonly Row<RegExp>[] = [
  [/s2017062302/, "invalid_recipient", "Outlook.com: its mark of a mailbox that does not exist"],
  [/\[tss?\d\d\]/, "rate_limited", "Yahoo: deferred for volume or complaints"],
  [
    /\bs77719\b|\brp-00[1-3]\b|exceeded the (?:rate|connection) limit/,
    "rate_limited",
    "Microsoft: more mail or connections than it takes from this address now",
  ],
  [/\b(?:s[37]150|s844)\b|part of their network/, "reputation_block", "Outlook.com: block list"],
  [/\bsc-00\d\b|messages from \S{1,60} weren't sent/, "reputation_block", "Outlook.com: our address"],
  [
    /ask your postmaster for help or to contact \S{0,100}@/,
    "reputation_block",
    "T-Online: our address is unknown to them or blocked",
  ],
  [/adresse ip source bloquee|service refuse\b/, "reputation_block", "Orange: our address"],
  [/\bofr\w{0,3}_506\b/, "spam_content", "Orange: taken for spam"],
  [
    /groups\.google\.com|google groups/,
    "recipient_policy",
    "a group that is closed, or not there: says it is one of both",
  ],
  [
    /not (?:rfc ?\d{3,4} ?(?:compliant|conform)|compliant with rfc)|not rfc ?\d{3,4}|duplicate header|multiple addresses in/,
    "protocol_error",
    "the form of the message",
  ],
  [
    /mailbox unavailable \(-?\d+:-?\d+:-?\d+\)/,
    "invalid_recipient",
    "Outlook.com: its older mark of the same",
  ],
  [/^542 \S+ rejected$/, "invalid_recipient", "Symantec: not among the registered addresses"],
  [
    /receiving mail (?:too quickly|at a rate)/,
    "recipient_policy",
    "Gmail: the mailbox's own limit, not ours",
  ],
  [/gr[ae]y-?list/, "greylisted", "says so"],
  [
    /(?:relay|relaying)(?: access)? (?:is )?(?:denied|not permitted|not allowed|prohibited)/,
    "relay_denied",
    "says so",
  ],
  [/unable to relay|do(?:es)? not relay|not permitted to relay|rcpthosts/, "relay_denied", "Exchange, qmail"],
  [/does not have authentication information/, "authentication_failed", "Gmail"],
  [/\b(?:spf|dkim|dmarc)\b/, "authentication_failed", "refused for a mechanism by name"],
  [
    /unauthenticated (?:e?mail|message)|sender is unauthenticated/,
    "authentication_failed",
    "Gmail, Microsoft",
  ],
  [
    /too many (?:messages|connections|concurrent|simultaneous|e?mails|sessions|recipients)/,
    "rate_limited",
    "a count",
  ],
  [
    /\b(?:concurren\w{1,4}|simultaneous)\b.{0,60}(?:limit|maximum|exceed|reach)|\bconnections? (?:count |frequency )?limit|\b(?:limit|max|maximum)\b.{0,30}\b(?:connections|sessions)\b.{0,40}(?:exceed|reach)|exceed\w{0,3} .{0,40}(?:limit|maximum|number) (?:(?:of|on|for) )?(?:\w{1,12} ){0,3}(?:connections|sessions)\b/,
    "rate_limited",
    "a count of connections",
  ],
  [
    /(?:frequency|relay quota|daily \S{0,20} ?quota).{0,20}(?:limit|exceed)|reached your daily/,
    "rate_limited",
    "a count over a time",
  ],
  [/rate.?limit|throttl|too (?:fast|frequent|quickly)|unusual rate/, "rate_limited", "a rate"],
  [/unexpected volume|temporarily deferred due to/, "rate_limited", "Yahoo and who runs its software"],
  [/spamhaus|barracuda|spamcop|sorbs|uceprotect|proofpoint|cloudmark/, "reputation_block", "a list by name"],
  [/\b(?:rbl|dnsbl)\b|(?:block|black|deny) ?list|blocked using/, "reputation_block", "a list"],
  [/reputation|\bbanned\b|is listed (?:in|at|on|by)/, "reputation_block", "our standing"],
  [
    /reverse dns|\brdns\b|\bptr\b|reverse (?:host|lookup)|ip name lookup failed|unverifyable sending ip/,
    "reputation_block",
    "our address has no name",
  ],
  [/blocked (?:by ldap|for abuse)|smtp server of your isp/, "reputation_block", "our address"],
  [
    /\bdynamic (?:ip|address|host|pool)|dial-?up|residential|open (?:relay|proxy)|botnet|compromised (?:host|server|account)|mail.?abuse|sender(?:score|base)/,
    "reputation_block",
    "what our address is taken for",
  ],
  [
    /(?:your|client|sending|source|this) (?:ip|host|mail ?server|server|network).{0,60}(?:block|reject|denied|refus|not accept|not allowed)|(?:block|reject|denied|refus|not accept)\w{0,4} .{0,40}(?:your|client|sending|source) (?:ip|host|mail ?server|server|network)/,
    "reputation_block",
    "refuses our host by name",
  ],
  [/virus|malware|infected|trojan|attachment|file type/, "attachment_rejected", "what is inside"],
  [
    /spam(?!haus|cop)|unsolicited|\bjunk\b|phish|\buce\b|\bube\b|bayes|(?:bulk|unwanted|malicious) (?:e?mail|message|content)|垃圾/,
    "spam_content",
    "taken for spam",
  ],
  [
    /content (?:filter|rejected|denied|blocked|reject)|message content|(?:suspicious|forbidden|prohibited|objectionable) content/,
    "spam_content",
    "the text itself",
  ],
  [
    /\b(?:mail ?box|user|account|recipient|inbox|maildir|folder)\b.{0,60}(?:quota|(?:size|storage|space) limit|exceeded (?:its|their|the) limit|too many messages)|\b(?:over|exceed(?:s|ed)?|out of|above|beyond) (?:\w{1,12} ){0,3}quota|\bquota.{0,20}(?:exceed|full|reach|limit|violat)|mail quota|disk quota/,
    "mailbox_full",
    "a quota, which is a mailbox's",
  ],
  [
    /(?:message|mail|size).{0,40}(?:too (?:large|big)|exceeds)|size limit|(?:larger|bigger) than|exceed(?:s|ed)? .{0,40}(?:message|maximum|mail) size|maximum (?:message|mail) size|too much (?:mail )?data/,
    "message_too_large",
    "says so",
  ],
  [
    /(?:mailbox|mail ?folder|mail ?drop|inbox|user's \w{1,12}).{0,60}\bfull\b|over ?quota|quota (?:is )?exceeded/,
    "mailbox_full",
    "says so",
  ],
  [
    /exceeded (?:its |their |the )?(?:storage|quota|mailbox)|out of (?:storage|space)|(?:inbox|account|storage|maildir) (?:is )?full|full (?:mail ?box|inbox)|not enough (?:storage|(?:disk )?space)|no space (?:left )?(?:in|for) |insufficient (?:disk )?(?:space|quota)|postfach (?:ist )?voll|bo[iî]te .{0,30}pleine|casella piena|buz[oó]n .{0,20}lleno|已满|переполнен/,
    "mailbox_full",
    "says so",
  ],
  [
    /(?:sender|mail from|return.?path|envelope.?from|from address|originat(?:or|ing address)).{0,40}(?:reject|invalid|denied|refused|exist|unknown|verif|resolv|not found|not allowed|bad)/,
    "invalid_sender",
    "speaks of our address",
  ],
  [
    /unrout(?:e)?able sender|valid from:|different address or alias|sender.{0,40}null mx/,
    "invalid_sender",
    "speaks of our address",
  ],
  [/starttls|(?:tls|encryption) (?:is )?required/, "tls_failure", "wants encryption"],
  [/\bhelo\b|client host/, "reputation_block", "Postfix: speaks of our name"],
  [
    /your (?:account|ip|server|domain)/,
    "recipient_policy",
    "speaks of us: nothing below may read it as the recipient",
  ],
  [
    /(?:account|mailbox|user|recipient).{0,30}(?:disabled|inactive|suspended|deactivated|discontinued|frozen|is locked|not active|no longer (?:active|in use|available|valid)|(?:is|been|was) (?:closed|terminated|cancell?ed))/,
    "inactive_mailbox",
    "closed, but there",
  ],
  [
    /(?:disabled|inactive|suspended|closed) (?:recipient|user|mailbox|account)|account (?:closed|expired|terminated)|compte du destinataire est bloque/,
    "inactive_mailbox",
    "closed, but there",
  ],
  [
    /(?:message|delivery|envelope|queue (?:life)?time)\b.{0,12}\bexpired|(?:retries|attempts) (?:have been |were )?(?:exceeded|exhausted)|exceeded (?:the )?(?:maximum|max) (?:retr|time in)|too (?:long|old) (?:in|for) (?:the )?queue|been (?:in (?:the|our) queue|queued|undeliverable) (?:for|too)|retry (?:timeout|time) exceeded|retry time not reached|in the queue too long|gave up after|giving up\.$|could not deliver for the last|delivery time expired|could not be delivered for \d+|failed \d+ attempts|undelivered for (?:too long|\d+)|not delivered within/,
    "message_expired",
    "another server tried until its time was up",
  ],
  [
    /connection (?:timed out|refused|reset|dropped|closed|lost|terminated|was)|lost connection|(?:operation|session|conversation|smtp\w{0,8}|connect\w{0,4})\b.{0,60}timed? ?out|broken pipe|no answer from host|(?:cannot|can't|could ?n[o']t|unable to|failed to|failure to) (?:connect|contact|reach|establish)|host (?:is )?down|unreachable|connect(?:ion)? (?:to \S{1,255} )?fail|did not accept our requests to connect|socket error|no route to host|network is unreachable|host (?:is )?(?:not reachable|unreachable|not responding)|(?:establish|able to make) an? smtp connection|no smtp connection got/,
    "connection_failed",
    "another server could not reach the next one",
  ],
  [
    /pipe to \||child process of|^procmail: |mailer error/,
    "receiver_error",
    "a program of the receiver's failed",
  ],
  [
    /host not found,? try again|name (?:server|service).{0,30}(?:time|tempor|try again)|temporar\w{1,4} .{0,40}(?:resol|lookup|dns)|(?:lookup|resol\w{1,6}) failed temporar|servfail/,
    "dns_failure",
    "could not tell",
  ],
  [
    /no such domain|domain (?:name )?(?:not found|does not exist|unknown)|unknown (?:domain|host)|host unknown|: host not found|host \S{1,255} not found|any host named|domain is not reachable|(?:no such|non-?existent|unresolvable) (?:host|domain)(?: ?name)?\b|\bnxdomain\b|name or service not known|(?:cannot|can't|could ?n[o']t|unable to) (?:resolve|find|locate) (?:the |any |a )?(?:host|domain|destination|mail server|mx)|域名不存在/,
    "invalid_domain",
    "says so",
  ],
  [
    /no (?:mx|mail exchanger) (?:record|host)|no smtp service|find a mail exchanger|does ?n[o']t receive (?:e?mail)|does not accept mail|accepts no mail|no mail servers|code nxdomain|illegal host\/domain/,
    "invalid_domain",
    "it takes no mail",
  ],
  [
    /no such (?:e?-?mail ?)?(?:user|mail ?box|recipient|person|account|address|local|name|alias|mail ?drop)/,
    "invalid_recipient",
    "says so",
  ],
  [
    /(?:recipient|user|account|mailbox|employee) .{0,40}no longer (?:exists|works|employed|with)|no (?:user|mailbox|account|recipient|one) (?:by|with|named|called|of) (?:that|this)|(?:cannot|can't|could ?n[o']t|unable to) (?:find|locate) (?:the |a |any |that )?(?:user|mailbox|recipient|account)/,
    "invalid_recipient",
    "says so",
  ],
  [
    /(?:unknown|invalid|nonexistent|non-existent|no valid|final delivery|bad|illegal|undefined) (?:or \w{1,12} )?(?:e?-?mail |virtual |local |to |destination )?(?:user|mail ?box|recipient|account|local.part|addressee|alias)/,
    "invalid_recipient",
    "says so",
  ],
  [
    /(?:user|mailbox|recipient|account|e-?mail address|\balias)(?: \S{1,80})? (?:(?:is|was|has|are) )?(?:unknown|not found|not known|not (?:a )?(?:valid|recogni[sz]ed|registered)|invalid|undefined|nonexistent|non-existent|unavailable here|not here)|addressee unknown|not (?:a )?(?:valid|known|local|recogni[sz]ed|registered) (?:user|mailbox|recipient|account|e-?mail address)/,
    "invalid_recipient",
    "says so",
  ],
  [
    /(?:user|mailbox|recipient|account|address|alias).{0,80}(?:does not|doesn't|did not|not|no longer) exist|(?:empf.{1,2}nger|benutzer|adresse).{0,20}(?:unbekannt|existiert nicht)|unbekannter? (?:empf.{1,2}nger|benutzer)|(?:utilisateur|destinataire|adresse) inconnue?|(?:usuario|destinatario) (?:desconocido|no existe)|(?:utente|destinatario) (?:sconosciuto|inesistente)|usu.{1,2}rio (?:desconhecido|inexistente)|(?:пользовател\w{0,3}|адрес\w{0,3}|ящик).{0,30}(?:не найден|не существует)|(?:用户|收件人|用户名)\S{0,6}不存在|存在しません/,
    "invalid_recipient",
    "Gmail: the account that you tried to reach",
  ],
  [
    /doesn't have an? \S{1,60} account|no mailbox (?:here|by that name)|not a (?:valid|known) (?:mailbox|user)/,
    "invalid_recipient",
    "Yahoo, qmail",
  ],
  [/unrouteable address/, "invalid_recipient", "Exim: no router knows the local part"],
  [/not listed in (?:public|domino|the)/, "invalid_recipient", "Notes, Domino"],
  [
    /address couldn't be found|recipient (?:name is )?not (?:recognized|found)/,
    "invalid_recipient",
    "Gmail, Exchange",
  ],
  [/check the recipient'?s? e-?mail address/, "invalid_recipient", "says what to mend"],
  [
    /too many hops|(?:mail|routing|forwarding) loop|\bloop(?:ing)? (?:detected|broken|back)|message (?:is )?looping|hop count/,
    "routing_error",
    "a loop",
  ],

  [
    /access denied|\bpolic(?:y|ies)\b|prohibited|not authori[sz]ed|not permitted|(?:rejected|blocked|refused|denied) by (?:the )?(?:recipient|user|owner|administrator|rule)|restricted|only accepts|moderat|authrequired|authentication required|not a member|security polic/,
    "recipient_policy",
    "no reason given",
  ],
  [
    /(?:local|internal|system|configuration|software|server|unexpected|unspecified|program|i\/o) (?:error|problem|failure)|(?:cannot|can't|could ?n[o']t|unable to) (?:create|open|write|append|save|update)|(?:permission denied|insufficient permission)|exit(?:ed)? (?:with )?(?:status|code)|no space left on/,
    "receiver_error",
    "its own trouble",
  ],
  [
    /insufficient (?:system )?(?:storage|resources)|disk full|too busy|overload/,
    "receiver_error",
    "its own trouble",
  ],
];

/**
 * Replies about our address, domain or account. A server that could not verify its sender may write `5.1.1` and `user
 * unknown` as well: no status and no word beside these may suppress the recipient.
 */
export const aboutSender: readonly Row<RegExp>[] = [
  [
    /(?<!(?:recipient|rcpt)\W{1,3}(?:address )?)call-?(?:out|back|forward)\b.{0,40}(?:fail|verif|reject|refus|denied|error|unsuccess)|(?:sender|return.?path|mail from|envelope.?from)\W{1,3}(?:address )?(?:verif|call-?(?:out|back))|verif\w{1,8} (?:of )?(?:the |your )?(?:sender|return.?path|mail from)/,
    "invalid_sender",
    "the receiver's check of our sender address failed",
  ],
  [
    /(?<!(?:to|the message'?s?) )\b(?:sender|return.?path|mail from|envelope.?from|from address|originat(?:or|ing address))(?:'s)?\b(?:(?!\b(?:recipient|rcpt|to address|addressee)\b).){0,60}?(?:reject|invalid|denied|refused|(?:not|n't|non-?) ?exist|unknown|no such|unverif|resolv|not found|not allowed|not permitted|\bbad\b|fail|disabled|inactive|suspended|deactivated|closed|expired|blocked|undeliverable|unroute?able)/,
    "invalid_sender",
    "speaks of our address",
  ],
  [
    /(?:unknown|invalid|no such|non-?existent|\bbad|unverif\w{1,6}|unresolvable|unroute?able|rejected|refused|disabled|suspended|(?:cannot|can't|can not|could ?n[o']t|unable to|failed to|not) (?:find|resolve|verify|locate|look ?up|validate|accept|recogni[sz]e)d?) (?:(?:the|a|your|this|address|domain|host|name|of|for|in|envelope|mail) ){0,4}(?:sender|return.?path|mail from|envelope.?from|from address)\b/,
    "invalid_sender",
    "speaks of our address",
  ],
  [
    /\byour (?:e-?mail |mail |own |sending |sender |from |smtp )?(?:account|domain|address (?:is|was|has|does|could|can|not|rejected)|ip\b|server|host\b)/,
    "recipient_policy",
    "speaks of us",
  ],
];

/** Words too vague to outweigh a status; where there is none, they are better than the code alone. */
export const vague: readonly Row<RegExp>[] = [
  [/address rejected|not allowed|refused|blocked|rejected/, "recipient_policy", "a refusal without a reason"],
  [
    /try again later|temporar(?:y|ily)|service (?:currently |temporarily )?(?:not |un)available|not accepting (?:connections|network)/,
    "receiver_error",
    "its own trouble, it seems",
  ],
];

/**
 * Statuses that many causes share: the wording decides, and this applies if it is silent.
 * `any`: whatever it says. `harmless`: all but what suppresses, for the status speaks of policy or
 * of protocol and not of a mailbox.
 */
export const shared: readonly (readonly [string, "any" | "harmless", Classification, string])[] = [
  ["421 X.7.0", "harmless", "greylisted", "the usual first answer of a greylist"],
  ["X X.7.0", "harmless", "recipient_policy", "other security or policy"],
  ["550 X.7.1", "harmless", "reputation_block", "a content filter or our standing"],
  ["X 4.7.1", "harmless", "greylisted", "the status that RFC 6647 knows greylists by"],
  ["X X.7.1", "harmless", "recipient_policy", "delivery not authorized, for reasons of the receiver's own"],
  ["X X.7.13", "any", "recipient_policy", "user account disabled (RFC 5248): ours or the recipient's"],
  ["X X.7.27", "any", "invalid_sender", "the sender's domain has a null MX (RFC 7505); Gmail: SPF"],
  ["X X.7.30", "harmless", "tls_failure", "REQUIRETLS (RFC 8689); Gmail: DKIM"],
  ["X X.1.10", "harmless", "recipient_policy", "a directory that lags behind: may be temporary"],
  ["X X.2.1", "any", "inactive_mailbox", "disabled; Gmail also: receives too much"],
  ["X X.4.1", "harmless", "connection_failed", "no answer; Microsoft: recipient address rejected"],
  ["X X.3.0", "any", "receiver_error", "other system status"],
  ["X X.3.2", "harmless", "receiver_error", "accepts nothing now"],
  ["X X.4.0", "any", "routing_error", "other network status"],
  ["X X.4.4", "any", "routing_error", "cannot be routed; Postfix, qmail: the domain has no mail host"],
  ["X X.5.0", "any", "protocol_error", "other protocol status; Outlook.com: mailbox unavailable"],
  ["X X.6.0", "harmless", "spam_content", "other content status"],
];

/**
 * Statuses that say too little alone, beside the words by which a receiver states which of their meanings it is. The
 * words are a server's own text and nothing looser: beside 5.7.1, Postfix says `Access denied` for any access map.
 */
export const stated: readonly (readonly [string, RegExp, Classification, string])[] = [
  [
    "X.1.10",
    /\brecipientnotfound\b|recipient not found by smtp address lookup/,
    "invalid_recipient",
    "Exchange: its resolver found no such recipient",
  ],
  ["X.1.10", /\bnull mx\b|domain does not accept mail/, "invalid_domain", "null MX (RFC 7505 §4.2)"],
  [
    "X.4.1",
    /^(?:550[ -])?(?:5\.4\.1 )?(?:[<[]?@[>\]]?: )?recipient address rejected: access denied(?:\.|$| \[| as\()/,
    "invalid_recipient",
    "Exchange Online: not in its directory (directory-based edge blocking)",
  ],
];

/** What a status's subject says where nothing above knows the detail (RFC 3463 §3.2 to §3.8). */
export const subjects: Record<string, Classification> = {
  "5": "protocol_error",
  "6": "attachment_rejected",
  "7": "recipient_policy",
};

/** The basic code, where there is no status and the words are silent (RFC 5321 §4.2.3, RFC 7504, RFC 4954). */
export const codes: readonly Row<number>[] = [
  [421, "receiver_error", "closing"],
  [451, "receiver_error", "local error"],
  [452, "receiver_error", "insufficient storage of the system"],
  [455, "protocol_error", "parameters"],
  [500, "protocol_error", "syntax"],
  [501, "protocol_error", "arguments"],
  [502, "protocol_error", "not implemented"],
  [503, "protocol_error", "bad sequence"],
  [504, "protocol_error", "parameter not implemented"],
  [521, "recipient_policy", "the host takes no mail; another MX might"],
  [530, "relay_denied", "a smart host wants a login"],
  [535, "relay_denied", "a smart host refused our login"],
  [552, "mailbox_full", "exceeded storage allocation of the mailbox"],
  [555, "protocol_error", "parameters of MAIL or RCPT"],
  [556, "invalid_domain", "the domain takes no mail (RFC 7504 §4)"],
];
