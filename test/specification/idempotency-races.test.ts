// The specification of the API, "Idempotency", where requests with one key come at the same moment: one effect, and every
// answer tells of it. What comes one after another is another file's.
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sound, startAsking, type Answer, type Asking } from "./asking.ts";

let api: Asking;
beforeAll(async () => void (api = await startAsking()));
afterAll(() => api.stop());

const parallel = 50;

/** Fifty requests at once under one Idempotency-Key; `body` is told which of them it is for. */
function race(method: string, target: string, body: (n: number) => unknown): Promise<Answer[]> {
  const headers = { "idempotency-key": randomUUID() };
  return Promise.all(
    Array.from({ length: parallel }, (_, n) => {
      const content = body(n);
      return api.ask(method, target, { headers, ...(content === undefined ? {} : { body: content }) });
    }),
  );
}

const distinct = (values: unknown[]): number => new Set(values).size;
const replayed = (answers: Answer[]): number =>
  answers.filter((one) => one.headers["idempotency-replayed"] === "true").length;

async function taggedMessages(tag: string): Promise<{ id: string; subject: string }[]> {
  const listed = await api.ask("GET", `/v1/messages?tag=${tag}&limit=100`);
  expect(listed.status, listed.text).toBe(200);
  return listed.json.data;
}

test("fifty sends at once with one key and one body make one message and are answered alike", async () => {
  const body = sound({ tags: ["race-same"] });
  const answers = await race("POST", "/v1/messages", () => body);

  expect(answers.map((one) => one.status)).toEqual(Array.from({ length: parallel }, () => 202));
  expect(distinct(answers.map((one) => one.text))).toBe(1);
  expect(replayed(answers)).toBe(parallel - 1);
  expect(distinct(answers.map((one) => one.headers["x-request-id"]))).toBe(parallel);
  expect((await taggedMessages("race-same")).map((one) => one.id)).toEqual([answers[0]?.json.id]);
});

test("fifty sends at once with one key and fifty bodies make one message and 49 conflicts", async () => {
  const answers = await race("POST", "/v1/messages", (n) =>
    sound({ subject: `Race ${n}`, tags: ["race-other"] }),
  );
  const taken = answers.filter((one) => one.status === 202);
  const refused = answers.filter((one) => one.status !== 202);

  expect(taken).toHaveLength(1);
  expect(replayed(answers)).toBe(0);
  expect(refused.map((one) => [one.status, one.json.code])).toEqual(
    Array.from({ length: parallel - 1 }, () => [409, "duplicate_idempotency_key"]),
  );
  const [kept, ...more] = await taggedMessages("race-other");
  expect(more).toEqual([]);
  expect(kept?.id).toBe(taken[0]?.json.id);
  expect(kept?.subject).toBe(`Race ${answers.findIndex((one) => one.status === 202)}`);
});

test("fifty new webhook endpoints at once with one key are one endpoint, and all are shown its secret", async () => {
  const url = "https://hooks.ok.test/race";
  const answers = await race("POST", "/v1/webhooks", () => ({ url }));

  expect(answers.map((one) => one.status)).toEqual(Array.from({ length: parallel }, () => 201));
  expect(distinct(answers.map((one) => one.json.secret))).toBe(1);
  expect(replayed(answers)).toBe(parallel - 1);
  const listed = await api.ask("GET", "/v1/webhooks");
  expect(listed.json.data.filter((one: { url: string }) => one.url === url)).toHaveLength(1);
});

test("fifty removals at once of one suppression with one key are all the one that removed it", async () => {
  const email = "raced@elsewhere.test";
  const added = await api.ask("POST", "/v1/suppressions", { body: { emails: [email] } });
  expect(added.status, added.text).toBeLessThan(300);
  const answers = await race("DELETE", `/v1/suppressions/${email}`, () => undefined);

  expect(answers.map((one) => one.status)).toEqual(Array.from({ length: parallel }, () => 204));
  expect(replayed(answers)).toBe(parallel - 1);
  expect((await api.ask("GET", `/v1/suppressions/${email}`)).status).toBe(404);
});
