// Reports as mail systems write them, small ones of our own: what tests send to the inbound port.
export interface DsnWishes {
  to: string;
  recipient: string;
  action?: string;
  status?: string;
  diagnostic?: string;
  original?: string;
  messageId?: string;
}

const crlf = (text: string): string => text.replace(/\r?\n/g, "\r\n");

/** RFC 3464, one recipient, the original's header returned. */
export function dsnMail(wishes: DsnWishes): string {
  const status = wishes.status ?? "5.1.1";
  return crlf(`Return-Path: <>
From: Mail Delivery System <MAILER-DAEMON@mx.far.test>
To: ${wishes.to}
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="=_b1"
Date: Fri, 27 Nov 2026 09:20:00 +0000
Message-ID: <1@mx.far.test>

--=_b1
Content-Type: text/plain; charset=us-ascii

I could not deliver your message to one recipient.

--=_b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.far.test
Arrival-Date: Fri, 27 Nov 2026 09:15:00 +0000

Final-Recipient: rfc822; ${wishes.recipient}
${wishes.original === undefined ? "" : `Original-Recipient: rfc822; ${wishes.original}\n`}Action: ${wishes.action ?? "failed"}
Status: ${status}
Diagnostic-Code: smtp; ${wishes.diagnostic ?? `550 ${status} no such user here`}

--=_b1
Content-Type: text/rfc822-headers

From: shop@shop.example
To: ${wishes.recipient}
Subject: Your order
Message-ID: ${wishes.messageId ?? "<x@mail.test>"}

--=_b1--
`);
}

/** A report whose text for people, recipient fields and returned header are given. */
export function reportMail(wishes: {
  to: string;
  human: string;
  fields: string[];
  returned?: string | undefined;
}): string {
  return crlf(`Return-Path: <>
From: Mail Delivery System <MAILER-DAEMON@mx.far.test>
To: ${wishes.to}
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="=_b1"

--=_b1
Content-Type: text/plain; charset=us-ascii

${wishes.human}

--=_b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.far.test

${wishes.fields.join("\n")}

--=_b1
Content-Type: text/rfc822-headers

From: shop@shop.example
${wishes.returned ?? "Subject: Your order"}

--=_b1--
`);
}

export interface ArfWishes {
  to: string;
  type?: string;
  from?: string;
  /** Lines of the feedback report beside type, agent and version. */
  report?: string[];
  /** Header lines of the returned mail. */
  returned?: string[];
  date?: boolean;
  encode?: boolean;
}

/** RFC 5965. */
export function arfMail(wishes: ArfWishes): string {
  const report = [
    `Feedback-Type: ${wishes.type ?? "abuse"}`,
    "User-Agent: SomeFBL/1.0",
    "Version: 1",
    ...(wishes.report ?? []),
  ].join("\r\n");
  const encoded = wishes.encode === true;
  return crlf(`From: ${wishes.from ?? "Feedback Loop <fbl@far.test>"}
To: ${wishes.to}
Subject: complaint
${wishes.date === false ? "" : "Date: Fri, 27 Nov 2026 10:00:00 +0000\n"}MIME-Version: 1.0
Content-Type: multipart/report; report-type="feedback-report"; boundary="=_f (1)"

--=_f (1)
Content-Type: text/plain

This is an abuse report.

--=_f (1)
content-type: message/feedback-report
${encoded ? "content-transfer-encoding: base64\n" : ""}
${encoded ? Buffer.from(`${report}\r\n`).toString("base64") : report}

--=_f (1)
Content-Type: message/rfc822

${(wishes.returned ?? ["Message-ID: <x@mail.test>", "Subject: Your order"]).join("\n")}

Hello
--=_f (1)--
`);
}

/** qmail's form, in words alone. */
export function qmailBounce(to: string, recipient: string, reply: string): string {
  return crlf(`From: MAILER-DAEMON@mx.far.test
To: ${to}
Subject: failure notice

Hi. This is the qmail-send program at mx.far.test.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<${recipient}>:
198.51.100.4 does not like recipient.
Remote host said: ${reply}
Giving up on 198.51.100.4.

--- Below this line is a copy of the message.

Return-Path: <${to}>
To: ${recipient}
Subject: 550 5.1.1 is what our shop sells

user unknown
`);
}

export function plainMail(fields: Record<string, string>, body: string): string {
  return crlf(
    `${Object.entries(fields)
      .map(([name, value]) => `${name}: ${value}\n`)
      .join("")}\n${body}\n`,
  );
}
