// The whole program, asked as a client would: a key of each scope, a body that is a sound send, and JSON read back.
import type { IncomingHttpHeaders } from "node:http";
import { startProgram, type Program, type ProgramOptions } from "../support/program.ts";

export const scopes = ["send", "suppressions", "reporting", "admin"] as const;
export type Scope = (typeof scopes)[number];

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into bodies of many shapes
  json: any;
}

export interface Asking {
  program: Program;
  /** Of the account `default`; the admin one's is asked with where a test names none. */
  keys: Record<Scope, string>;
  /** `key` null: without Authorization. A text body goes as it is. */
  ask(
    method: string,
    target: string,
    more?: { body?: unknown; key?: string | null; headers?: Record<string, string> },
  ): Promise<Answer>;
  /** A new key: its id and its value. */
  newKey(more?: Record<string, unknown>): Promise<{ id: string; key: string }>;
  stop(): Promise<void>;
}

/** A send that is right, apart from what a test says of it. */
export const sound = (more: Record<string, unknown> = {}): Record<string, unknown> => ({
  from: "a@ok.test",
  to: "delivered@simulator.svc",
  subject: "Hello",
  html: "<p>Hi</p>",
  ...more,
});

export const bearer = (key: string): { authorization: string } => ({ authorization: `Bearer ${key}` });

/** `test`: its keys are test keys, whose mail plays the simulator and never leaves. */
export async function startAsking({
  test = true,
  ...options
}: ProgramOptions & { test?: boolean } = {}): Promise<Asking> {
  const program = await startProgram(options);
  const newKey: Asking["newKey"] = (more = {}) =>
    program.admin("POST", "/v1/keys", { name: "test", scope: "admin", test, ...more });
  const made = await Promise.all(
    scopes.map(async (scope) => [scope, (await newKey({ name: scope, scope })).key] as const),
  );
  const keys = Object.fromEntries(made) as Record<Scope, string>;
  return {
    program,
    keys,
    newKey,
    async ask(method, target, { body, key = keys.admin, headers = {} } = {}) {
      const content =
        body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) };
      const told = await program.ask({
        method,
        target,
        ...content,
        headers: {
          ...(key === null ? {} : bearer(key)),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      });
      return {
        ...told,
        json: /json/.test(String(told.headers["content-type"])) && told.text ? JSON.parse(told.text) : null,
      };
    },
    stop: () => program.stop(),
  };
}

/** Asks until `look` finds something; how long it takes depends on the program. */
export async function eventually<T>(look: () => Promise<T | null | undefined | false>): Promise<T> {
  const end = performance.now() + 100_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (performance.now() > end) throw new Error(`it did not come about: ${look.toString()}`);
    await new Promise((done) => setImmediate(done));
  }
}

/** The message, once it is delivered. */
export const delivered = (api: Asking, id: string) =>
  eventually(async () => {
    const { json } = await api.ask("GET", `/v1/messages/${id}`);
    return json.status === "delivered" && json;
  });
