// Whatever JSON comes: an acceptance or a Refusal with its rows, never another error.
import fc from "fast-check";
import { expect, test } from "vitest";
import { errorCatalog, Refusal } from "../../src/errors.ts";
import { messageFields } from "../../src/submission/shape.ts";
import { good, makeRig } from "./rig.ts";

const { store, runner, send } = makeRig();

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom("", "a@x.test", "\r\n", "__proto__"),
);
const anyValue = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  anyText,
  fc.array(anyText),
  fc.dictionary(anyText, anyText),
  fc.array(
    fc.dictionary(
      fc.constantFrom("email", "name", "filename", "content", "content_type", "content_id"),
      anyText,
    ),
  ),
);
const fields = fc.constantFrom(...Object.keys(messageFields), "__proto__", "constructor", "x");

async function holds(json: unknown): Promise<void> {
  try {
    expect((await send(json)).status).toBe(202);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const { errors } = error.extras;
    expect(errors?.[0]?.code).toBe(error.code);
    for (const { code, issue } of errors ?? []) {
      expect(errorCatalog[code].status).toBe(422);
      expect(issue).not.toBe("");
    }
    expect(() => JSON.stringify(error.extras)).not.toThrow();
  }
  expect(runner.held.size).toBe(0);
  store.accepted = [];
  store.asked = [];
}

test("any JSON at all is taken or refused", async () => {
  await fc.assert(fc.asyncProperty(fc.jsonValue({ maxDepth: 5 }), holds), { numRuns: 300 });
});

test("a good request with any fields replaced is taken or refused", async () => {
  const changes = fc.array(fc.tuple(fields, anyValue), { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(changes, async (changed) => {
      // By way of text, as a client's `__proto__` comes: an own key.
      const parts = [...Object.entries(good()), ...changed].map(
        ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
      );
      await holds(JSON.parse(`{${parts.join(",")}}`));
    }),
    { numRuns: 700 },
  );
});
