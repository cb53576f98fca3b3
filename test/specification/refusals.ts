// Every refusal that the specification of the API knows, really produced: the row says what has to be the case and what
// is then asked. Three of them (a bug, and an account that its bounces have paused) need a hand inside, and come from
// the HTTP server over a real store; all others from the whole program.
import { newDirectory, openSqlite } from "../store/fixtures.ts";
import { startHttp } from "../http/harness.ts";
import { ManualClock } from "../support/clock.ts";
import {
  hour,
  mail,
  ownRates,
  second,
  startCustomer,
  type Answer,
  type Customer,
  type Wish,
} from "./customer.ts";

export interface Produced {
  code: string;
  status: number;
  when: string;
  /** Of the request. */
  path: string;
  answer: Answer;
  /** The same with `Accept: application/problem+json`. */
  asProblem: Answer;
  /** Of the clock, when it was asked. */
  now: number;
}

interface Row {
  code: string;
  status: number;
  when: string;
  ask: [method: string, path: string, wish?: Wish];
  /** What has to be the case; may give the request in place of `ask`. */
  before?: (customer: Customer) => Promise<Row["ask"] | void>;
  after?: (customer: Customer) => Promise<unknown>;
  /** Time that has to pass before there is an answer. */
  takesMs?: number;
}

const send = (over: Record<string, unknown>): Row["ask"] => [
  "POST",
  "/v1/messages",
  { key: "test", body: { ...mail, ...over } },
];
const withKey = async (customer: Customer, wanted: object, change: string | null): Promise<Row["ask"]> => {
  const { id, value } = await customer.key({ scope: "admin", ...wanted });
  if (change !== null) await customer.program.admin("POST", `/v1/keys/${id}/${change}`, {});
  return ["GET", "/v1/messages", { key: value }];
};
const attached = (attachment: object): Row["ask"] =>
  send({ attachments: [{ filename: "a.txt", content: "aGk=", ...attachment }] });
export const failAll = async ({ program }: Customer, how: "servfail" | "timeout" | null): Promise<void> => {
  const { records } = await program.admin("GET", "/v1/domains/ok.test");
  for (const { name } of records) program.dns.fail(name, how);
};
/** The answer to a request, while time passes step by step. */
export async function whileTimePasses(
  { clock }: Customer,
  stepMs: number,
  asked: Promise<Answer>,
): Promise<Answer> {
  const over = asked.then(() => true);
  while (!(await Promise.race([over, clock.advance(stepMs).then(() => false)]))) continue;
  return asked;
}

/** Ends with the name server answering, and no check of ok.test under way: a request would get the result of that one. */
export async function checkEnds(customer: Customer): Promise<void> {
  await failAll(customer, null);
  const verify = () => customer.ask("POST", "/v1/domains/ok.test/verify");
  // Questions from before are still waiting for their time to be up.
  while ((await whileTimePasses(customer, 1, verify())).status !== 200) continue;
}
const spent = async (customer: Customer, change: (id: string) => [path: string, rates: object]) => {
  await customer.program.admin("POST", "/v1/accounts", { name: "spent" }).catch(() => null);
  const { id, value } = await customer.key({ scope: "admin" }, "spent");
  const [path, rates] = change(id);
  await customer.program.admin("PATCH", path, { rates }, "spent");
  const ask: Row["ask"] = ["GET", "/v1/events", { key: value }];
  await customer.ask(...ask);
  return ask;
};
const single = { burst: 1, per_second: 1 };

const rows: Row[] = [
  {
    code: "invalid_request",
    status: 400,
    when: "malformed JSON",
    ask: ["POST", "/v1/messages", { raw: '{"from":' }],
  },
  {
    code: "invalid_request",
    status: 400,
    when: "no Content-Type",
    ask: ["POST", "/v1/messages", { body: mail, headers: { "content-type": null } }],
  },
  { code: "invalid_request", status: 400, when: "a limit of 0", ask: ["GET", "/v1/messages?limit=0"] },
  { code: "invalid_api_key", status: 401, when: "no key", ask: ["GET", "/v1/messages", { key: null }] },
  {
    code: "invalid_api_key",
    status: 401,
    when: "a malformed key",
    ask: ["GET", "/v1/messages", { key: "svc_live_x" }],
  },
  {
    code: "invalid_api_key",
    status: 401,
    when: "an expired key",
    ask: ["GET", "/"],
    async before(customer) {
      const ask = await withKey(customer, { expires_at: customer.at(second) }, null);
      await customer.clock.advance(second);
      return ask;
    },
  },
  {
    code: "invalid_api_key",
    status: 401,
    when: "a revoked key",
    ask: ["GET", "/"],
    before: (customer) => withKey(customer, {}, "revoke"),
  },
  {
    code: "scope_insufficient",
    status: 403,
    when: "a key without the scope",
    ask: ["POST", "/v1/messages", { key: "reporting", body: mail }],
  },
  {
    code: "key_disabled",
    status: 403,
    when: "a disabled key",
    ask: ["GET", "/"],
    before: (customer) => withKey(customer, {}, "disable"),
  },
  {
    code: "key_disabled",
    status: 403,
    when: "a suspended account",
    ask: ["GET", "/"],
    async before({ program, key }) {
      await program.admin("POST", "/v1/accounts", { name: "suspended" });
      const { value } = await key({ scope: "admin" }, "suspended");
      await program.admin("POST", "/v1/accounts/suspended/suspend", {});
      return ["GET", "/v1/messages", { key: value }];
    },
  },
  {
    code: "ip_not_allowed",
    status: 403,
    when: "from outside of the key's allowlist",
    ask: ["GET", "/"],
    before: (customer) => withKey(customer, { allow_ips: ["203.0.113.0/24"] }, null),
  },
  {
    code: "resource_not_found",
    status: 404,
    when: "no such message",
    ask: ["GET", "/v1/messages/msg_01jdkq4y8z0000000000000001"],
  },
  {
    code: "resource_not_found",
    status: 404,
    when: "no such suppression",
    ask: ["GET", "/v1/suppressions/none@far.test"],
  },
  { code: "resource_not_found", status: 404, when: "no such pool", ask: ["GET", "/v1/ip_pools/none"] },
  { code: "resource_not_found", status: 404, when: "no such path", ask: ["GET", "/v1/keys"] },
  { code: "method_not_allowed", status: 405, when: "a method", ask: ["PUT", "/v1/messages"] },
  {
    code: "duplicate_idempotency_key",
    status: 409,
    when: "the key of another body",
    ask: ["POST", "/v1/messages", { key: "test", body: mail, headers: { "idempotency-key": "taken" } }],
    async before({ ask }) {
      const headers = { "idempotency-key": "taken" };
      await ask("POST", "/v1/messages", { key: "test", body: { ...mail, subject: "Another" }, headers });
    },
  },
  {
    code: "conflict",
    status: 409,
    when: "the default pool is deleted",
    ask: ["DELETE", "/v1/ip_pools/default"],
  },
  {
    code: "message_not_cancelable",
    status: 409,
    when: "it is canceled already",
    ask: ["GET", "/"],
    async before({ ask, at }) {
      const body = { ...mail, send_at: at(hour) };
      const { json } = await ask("POST", "/v1/messages", { key: "test", body });
      const cancel: Row["ask"] = ["POST", `/v1/messages/${json.id}/cancel`, { key: "test" }];
      await ask(...cancel);
      return cancel;
    },
  },
  {
    code: "message_too_large",
    status: 413,
    when: "20 MB attached, more than 25 MB in base64",
    ask: attached({ content: Buffer.alloc(20 * 1024 * 1024).toString("base64") }),
  },
  {
    code: "unsupported_media_type",
    status: 415,
    when: "text",
    ask: ["POST", "/v1/messages", { raw: "from=a", headers: { "content-type": "text/plain" } }],
  },
  {
    code: "unsupported_media_type",
    status: 415,
    when: "another charset",
    ask: [
      "POST",
      "/v1/messages",
      { body: mail, headers: { "content-type": "application/json; charset=latin1" } },
    ],
  },
  { code: "validation_failed", status: 422, when: "a misspelt field", ask: send({ attachements: [] }) },
  { code: "invalid_email_address", status: 422, when: "a recipient", ask: send({ to: "ann@@far.test" }) },
  { code: "invalid_email_address", status: 422, when: "a sender", ask: send({ from: "shop ok.test" }) },
  { code: "sender_not_verified", status: 422, when: "an unknown domain", ask: send({ from: "a@none.test" }) },
  {
    code: "recipient_suppressed",
    status: 422,
    when: "one of two recipients",
    ask: send({ to: ["gone@far.test", "here@far.test"] }),
    before: async ({ ask }) =>
      void (await ask("POST", "/v1/suppressions", { body: { emails: ["gone@far.test"] } })),
  },
  { code: "ip_pool_not_found", status: 422, when: "no such pool", ask: send({ ip_pool: "none" }) },
  {
    code: "scheduling_window_exceeded",
    status: 422,
    when: "more than 72 hours ahead",
    ask: ["GET", "/"],
    before: async ({ at }) => send({ send_at: at(72 * hour + 1) }),
  },
  {
    code: "invalid_attachment",
    status: 422,
    when: "an executable extension",
    ask: attached({ filename: "invoice.pdf.exe" }),
  },
  {
    code: "invalid_attachment",
    status: 422,
    when: "an invalid MIME type",
    ask: attached({ content_type: "no type" }),
  },
  { code: "invalid_attachment", status: 422, when: "corrupted base64", ask: attached({ content: "aGk*" }) },
  { code: "tracking_disabled", status: 422, when: "opens", ask: send({ track_opens: true }) },
  { code: "tracking_disabled", status: 422, when: "clicks", ask: send({ tracking: { clicks: true } }) },
  {
    code: "rate_limit_exceeded",
    status: 429,
    when: "a key's limit",
    ask: ["GET", "/"],
    before: (customer) => spent(customer, (id) => [`/v1/keys/${id}`, { "events-read": single }]),
  },
  {
    code: "rate_limit_exceeded",
    status: 429,
    when: "an account's limit",
    ask: ["GET", "/"],
    before: (customer) => spent(customer, () => ["/v1/accounts/spent", { account: single }]),
  },
  {
    code: "rate_limit_exceeded",
    status: 429,
    when: "a day's quota",
    ask: ["GET", "/"],
    async before({ program, key, ask }) {
      const { id, value } = await key({ scope: "send", test: true });
      await program.admin("PATCH", `/v1/keys/${id}`, { daily_quota: 1 });
      const again: Row["ask"] = ["POST", "/v1/messages", { key: value, body: mail }];
      await ask(...again);
      return again;
    },
  },
  {
    code: "upstream_error",
    status: 502,
    when: "the resolver fails",
    ask: ["POST", "/v1/domains/ok.test/verify"],
    before: (customer) => failAll(customer, "servfail"),
    after: (customer) => failAll(customer, null),
  },
  {
    code: "maintenance",
    status: 503,
    when: "maintenance",
    ask: ["GET", "/v1/messages"],
    before: ({ program, at }) =>
      program.admin("POST", "/v1/maintenance", { until: at(hour) }).then(() => undefined),
    after: ({ program }) => program.admin("DELETE", "/v1/maintenance"),
  },
  {
    code: "upstream_timeout",
    status: 504,
    when: "the resolver is silent",
    ask: ["POST", "/v1/domains/ok.test/verify"],
    before: (customer) => failAll(customer, "timeout"),
    after: (customer) => failAll(customer, null),
    takesMs: 500,
  },
  {
    code: "source_ip_locked",
    status: 403,
    when: "after 50 failures",
    ask: ["GET", "/v1/messages", { ip: "203.0.113.9" }],
    async before({ ask }) {
      for (let n = 0; n < 50; n++) await ask("GET", "/v1/messages", { key: "wrong", ip: "203.0.113.9" });
    },
  },
];

const problem = "application/problem+json";

export async function produceAll(): Promise<Produced[]> {
  const customer = await startCustomer({ config: { ...ownRates, dns: { timeout: "6s", tries: 2 } } });
  try {
    const produced: Produced[] = [];
    for (const row of rows) produced.push(await produce(customer, row));
    return [...produced, ...(await produceInside()), await produceOverload()];
  } finally {
    await customer.stop();
  }
}

async function produce(customer: Customer, row: Row): Promise<Produced> {
  const { code, status, when, before, after, takesMs } = row;
  const { clock } = customer;
  const [method, path, wish = {}] = (await before?.(customer)) ?? row.ask;
  const ask = async (headers = {}): Promise<Answer> => {
    const asked = customer.ask(method, path, { ...wish, headers: { ...wish.headers, ...headers } });
    if (!takesMs) return asked;
    const answer = await whileTimePasses(customer, takesMs, asked);
    await checkEnds(customer);
    await before?.(customer);
    return answer;
  };
  const now = clock.now();
  const answer = await ask();
  const asProblem = await ask({ accept: problem });
  await after?.(customer);
  return { code, status, when, path, answer, asProblem, now };
}

/** A bug in the program, and an account that is paused for its bounces. */
async function produceInside(): Promise<Produced[]> {
  const clock = new ManualClock();
  const real = await openSqlite(newDirectory(), clock);
  const store = new Proxy(real, {
    get(target, name) {
      if (name === "message") return () => Promise.reject(new TypeError("a bug"));
      const found: unknown = Reflect.get(target, name);
      return typeof found === "function" ? found.bind(target) : found;
    },
  });
  const http = await startHttp({ opened: { store, clock } });
  const now = clock.now();
  const twice = async (row: Pick<Produced, "code" | "status" | "when" | "path">, ask: object) => ({
    ...row,
    answer: await http.ask({ path: row.path, ...ask }),
    asProblem: await http.ask({ path: row.path, ...ask, headers: { accept: problem } }),
    now,
  });
  try {
    const path = "/v1/messages/msg_01jdkq4y8z0000000000000001";
    const bug = await twice({ code: "internal_error", status: 500, when: "a bug", path }, {});
    await real.pauseAccount(http.account.key, now, "too many bounces");
    const row = { code: "account_paused", status: 403, when: "too many bounces", path: "/v1/messages" };
    return [bug, await twice(row, { method: "POST", body: mail })];
  } finally {
    await http.stop();
  }
}

/** A queue that is full at the first message. */
async function produceOverload(): Promise<Produced> {
  const limits = { min_free_space: "0%", max_queue: 1 };
  const customer = await startCustomer({ config: { limits } });
  try {
    const body = { ...mail, send_at: customer.at(hour) };
    await customer.ask("POST", "/v1/messages", { key: "test", body });
    const ask: Row["ask"] = ["POST", "/v1/messages", { key: "test", body }];
    return await produce(customer, { code: "service_overloaded", status: 503, when: "a full queue", ask });
  } finally {
    await customer.stop();
  }
}
