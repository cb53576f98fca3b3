// The specification of the API, "SMTP codes in delivery events": every row of the table as the answer of a receiving
// server to a recipient of its own. What the event then says, whether there is another attempt, and whether the address
// is suppressed: only where the recipient is at fault.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startReceiver, type Receiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
import { minute, startCustomer, type Customer } from "./customer.ts";

interface Row {
  code: string;
  status: string;
  /** As a server words what the table means. */
  words: string;
  classification: string;
  category: string;
  suppresses?: boolean;
}

const rows: Row[] = [
  {
    code: "421",
    status: "4.7.0",
    words: "Greylisted, service unavailable, closing channel",
    classification: "greylisted",
    category: "policy",
  },
  {
    code: "421",
    status: "4.7.28",
    words: "Suspicious sending pattern from your address",
    classification: "rate_limited",
    category: "reputation",
  },
  {
    code: "450",
    status: "4.2.1",
    words: "Mailbox temporarily disabled",
    classification: "inactive_mailbox",
    category: "recipient",
  },
  {
    code: "451",
    status: "4.3.0",
    words: "Local error in processing",
    classification: "receiver_error",
    category: "technical",
  },
  {
    code: "451",
    status: "4.7.500",
    words: "Server busy. Please try again later",
    classification: "rate_limited",
    category: "reputation",
  },
  {
    code: "452",
    status: "4.2.2",
    words: "Mailbox full",
    classification: "mailbox_full",
    category: "recipient",
  },
  {
    code: "452",
    status: "4.5.3",
    words: "Too many recipients",
    classification: "rate_limited",
    category: "reputation",
  },
  {
    code: "550",
    status: "5.1.1",
    words: "Mailbox does not exist",
    classification: "invalid_recipient",
    category: "recipient",
    suppresses: true,
  },
  {
    // The receiver has looked the domain up; our own finding needs a recheck of the DNS.
    code: "550",
    status: "5.1.2",
    words: "Domain does not exist",
    classification: "invalid_domain",
    category: "recipient",
    suppresses: true,
  },
  {
    code: "550",
    status: "5.1.10",
    words: "Rejected by recipient policy",
    classification: "recipient_policy",
    category: "policy",
  },
  {
    code: "550",
    status: "5.2.1",
    words: "Mailbox disabled",
    classification: "inactive_mailbox",
    category: "recipient",
    suppresses: true,
  },
  {
    code: "550",
    status: "5.7.1",
    words: "Message rejected as spam by content filter",
    classification: "spam_content",
    category: "content",
  },
  {
    code: "550",
    status: "5.7.1",
    words: "Blocked because of the poor reputation of the sender",
    classification: "reputation_block",
    category: "reputation",
  },
  {
    code: "550",
    status: "5.7.26",
    words: "SPF, DKIM or DMARC failed",
    classification: "authentication_failed",
    category: "authentication",
  },
  {
    code: "550",
    status: "5.7.28",
    words: "Your address is on our blocklist",
    classification: "reputation_block",
    category: "reputation",
  },
  {
    code: "551",
    status: "5.1.6",
    words: "User moved",
    classification: "invalid_recipient",
    category: "recipient",
    suppresses: true,
  },
  {
    code: "552",
    status: "5.2.3",
    words: "Message exceeds the size limit",
    classification: "message_too_large",
    category: "content",
  },
  {
    code: "553",
    status: "5.1.7",
    words: "Sender address syntax error",
    classification: "invalid_sender",
    category: "policy",
  },
  {
    code: "554",
    status: "5.7.1",
    words: "Rejected for policy reasons",
    classification: "recipient_policy",
    category: "policy",
  },
  // Where a full mailbox leads: permanent, and yet never a suppression.
  {
    code: "552",
    status: "5.2.2",
    words: "Mailbox full",
    classification: "mailbox_full",
    category: "recipient",
  },
];
const addressOf = (row: Row): string => {
  const n = rows.indexOf(row);
  return `ann@row${n}.test`;
};
const isTemporary = ({ code }: Row): boolean => code.startsWith("4");

let customer: Customer;
let receiver: Receiver;
const ids = new Map<Row, string>();
beforeAll(async () => {
  receiver = await startReceiver({
    address: "127.0.0.43",
    onRcpt: (to) => {
      const row = rows.find((one) => addressOf(one) === to);
      return row && `${row.code} ${row.status} ${row.words}`;
    },
  });
  const outbound = { port: receiver.port, allow_networks: ["127.0.0.0/8"] };
  customer = await startCustomer({ config: { outbound } });
  for (const row of rows) {
    const domain = addressOf(row).slice("ann@".length);
    customer.program.dns.set(domain, "MX", [`10 mx.${domain}`]);
    customer.program.dns.set(`mx.${domain}`, "A", [receiver.address]);
    ids.set(row, await send(row));
  }
});
afterAll(async () => {
  await customer?.stop();
  await receiver?.stop();
});

async function send(row: Row): Promise<string> {
  const body = { from: "shop@ok.test", to: addressOf(row), subject: "Hello", text: "Hi" };
  const { status, json } = await customer.ask("POST", "/v1/messages", { body });
  expect(status).toBe(202);
  return json.id;
}
interface Event {
  event: string;
  data: Record<string, unknown>;
}
const events = (row: Row, count: number): Promise<Event[]> =>
  customer.eventually(async () => {
    const { json } = await customer.ask("GET", `/v1/events?message_id=${ids.get(row)}`);
    return json.data.length >= count && json.data;
  });
const recipient = async (row: Row) => {
  const { json } = await customer.ask("GET", `/v1/messages/${ids.get(row)}`);
  return json.recipients[0];
};

describe.each(rows.filter(isTemporary))("$code $status, $words", (row) => {
  test(`is temporary, ${row.classification}, and does not suppress`, async () => {
    const [deferred] = await events(row, 1);
    expect(deferred).toMatchObject({
      event: "message.deferred",
      data: {
        smtp_code: row.code,
        smtp_status: row.status,
        smtp_response: expect.stringContaining(row.words),
        bounce_type: "soft",
        bounce_classification: row.classification,
        attempt: 1,
      },
    });
    const { status, smtp_code: code, smtp_status: enhanced, next_attempt_at: next } = await recipient(row);
    expect([status, code, enhanced]).toEqual(["deferred", row.code, row.status]);
    expect(Date.parse(next)).toBeGreaterThan(customer.clock.now());
    expect(next).toBe(deferred?.data["next_attempt_at"]);
    expect((await customer.ask("GET", `/v1/suppressions/${addressOf(row)}`)).status).toBe(404);
  });
});

describe.each(rows.filter((row) => !isTemporary(row)))("$code $status, $words", (row) => {
  const suppresses = row.suppresses === true;

  test(`is permanent, ${row.classification}, and ${suppresses ? "suppresses" : "does not suppress"}`, async () => {
    const [bounced] = await events(row, 1);
    expect(bounced).toMatchObject({
      event: "message.bounced",
      data: {
        smtp_code: row.code,
        smtp_status: row.status,
        smtp_response: expect.stringContaining(row.words),
        bounce_type: "hard",
        bounce_classification: row.classification,
        bounce_category: row.category,
        source: "smtp",
        suppressed: suppresses,
      },
    });
    expect(await recipient(row)).toMatchObject({
      status: "bounced",
      smtp_code: row.code,
      smtp_status: row.status,
      next_attempt_at: null,
    });
    const entry = await customer.ask("GET", `/v1/suppressions/${addressOf(row)}`);
    const body = {
      from: "shop@ok.test",
      to: addressOf(row),
      subject: "Again",
      text: "Hi",
      send_at: customer.at(minute * 60),
    };
    const again = await customer.ask("POST", "/v1/messages/validate", { body });
    if (suppresses) {
      expect(entry.json).toMatchObject({
        email: addressOf(row),
        reason: "hard_bounce",
        source: "system",
        message_id: ids.get(row),
        smtp_code: row.code,
        smtp_status: row.status,
      });
      expect([again.status, again.json.code]).toEqual([422, "recipient_suppressed"]);
    } else expect([entry.status, again.status]).toEqual([404, 200]);
  });
});

test("what was temporary is tried again by itself within 72 seconds, what was permanent never", async () => {
  for (const row of rows) await events(row, 1);
  receiver.options.onRcpt = () => undefined;
  await customer.clock.advance(72 * 1000);
  for (const row of rows.filter(isTemporary)) {
    const [, delivered] = await events(row, 2);
    expect(delivered, row.status).toMatchObject({ event: "message.delivered", data: { attempt: 2 } });
  }
  await customer.clock.advance(60 * minute);
  for (const row of rows.filter((one) => !isTemporary(one))) {
    expect(await events(row, 1)).toHaveLength(1);
    const asked = receiver.commands.filter((line) => line.startsWith(`RCPT TO:<${addressOf(row)}>`));
    expect(asked).toHaveLength(1);
  }
});

describe("a failure without a reply", () => {
  interface Failure {
    what: string;
    /** Of the domain in the DNS; null: it does not exist. */
    mx: string[] | "servfail" | null;
    /** Where its host is, and what the server there does; no server: nobody listens. */
    host?: { address: string; server?: ReceiverOptions };
    codes: string[];
    status: string;
    classification: string;
    suppresses?: boolean;
  }
  const failures: Failure[] = [
    {
      what: "no connection",
      mx: ["10 mx"],
      host: { address: "127.0.0.44" },
      codes: ["421", "451"],
      status: "4.4.1",
      classification: "connection_failed",
    },
    {
      what: "a connection that is dropped before the greeting",
      mx: ["10 mx"],
      host: { address: "127.0.0.45", server: { drop: "banner" } },
      codes: ["421", "451"],
      status: "4.4.1",
      classification: "connection_failed",
    },
    {
      what: "a connection that is dropped in the session",
      mx: ["10 mx"],
      host: { address: "127.0.0.46", server: { drop: "rcpt" } },
      codes: ["421", "451"],
      status: "4.4.2",
      classification: "connection_failed",
    },
    {
      what: "a reply that is none",
      mx: ["10 mx"],
      host: { address: "127.0.0.47", server: { reply: { mail: "good day" } } },
      codes: ["421", "451"],
      status: "4.5.0",
      classification: "protocol_error",
    },
    {
      what: "a DNS that fails",
      mx: "servfail",
      codes: ["421", "451"],
      status: "4.4.3",
      classification: "dns_failure",
    },
    {
      what: "a domain that does not exist",
      mx: null,
      codes: ["550"],
      status: "5.1.2",
      classification: "invalid_domain",
    },
    {
      what: "a null MX",
      mx: ["0 ."],
      codes: ["556"],
      status: "5.1.10",
      classification: "invalid_domain",
      suppresses: true,
    },
    {
      what: "an MX in a private network that is not allowed",
      mx: ["10 mx"],
      host: { address: "10.11.12.13" },
      codes: ["550"],
      status: "5.4.6",
      classification: "routing_error",
    },
  ];

  test.each(failures)("$what is $status, $classification, in words of our own", async (failure) => {
    const domain = `fails${failures.indexOf(failure)}.test`;
    const { dns } = customer.program;
    const { mx, host, status, classification } = failure;
    if (mx === "servfail") dns.fail(domain, "servfail");
    else if (mx !== null)
      dns.set(
        domain,
        "MX",
        mx.map((record) => record.replace("mx", `mx.${domain}`)),
      );
    if (host) dns.set(`mx.${domain}`, "A", [host.address]);
    const server =
      host?.server && (await startReceiver({ ...host.server, address: host.address, port: receiver.port }));
    const body = { from: "shop@ok.test", to: `ann@${domain}`, subject: "Hello", text: "Hi" };
    const { json } = await customer.ask("POST", "/v1/messages", { body });
    const [event] = await customer.eventually(async () => {
      const page = await customer.ask("GET", `/v1/events?message_id=${json.id}`);
      return page.json.data.length > 0 && (page.json.data as Event[]);
    });
    await server?.stop();
    const isSoft = status.startsWith("4");
    expect(event).toMatchObject({
      event: isSoft ? "message.deferred" : "message.bounced",
      data: {
        smtp_code: expect.stringMatching(new RegExp(`^(${failure.codes.join("|")})$`)),
        smtp_status: status,
        smtp_response: expect.stringMatching(/^\[local\] \S/),
        bounce_type: isSoft ? "soft" : "hard",
        bounce_classification: classification,
        ...(isSoft ? {} : { source: "local", suppressed: failure.suppresses === true }),
      },
    });
    const entry = await customer.ask("GET", `/v1/suppressions/ann@${domain}`);
    expect(entry.status).toBe(failure.suppresses ? 200 : 404);
  });
});
