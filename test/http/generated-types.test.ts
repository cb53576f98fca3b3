// TypeScript's types, generated from the API's description as a customer would: the examples compile against them, and a
// client that takes the API for another than it is does not.
import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, test } from "vitest";
import type { RouteDeps } from "../../src/http/deps.ts";
import { createDocument } from "../../src/http/openapi/document.ts";
import { allRoutes } from "../../src/http/routes.ts";
import { fake } from "./harness.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "svc-types-"));

beforeAll(async () => {
  const routes = allRoutes(fake<RouteDeps>("deps", { config: { publicUrl: "" } as RouteDeps["config"] }));
  const document = createDocument(routes, { listener: "public", publicUrl: "https://mail.acme.example" });
  writeFileSync(join(folder, "openapi.json"), JSON.stringify(document));
  const generator = join(root, "node_modules/openapi-typescript/bin/cli.js");
  const hook = ["--import", join(root, "test/support/typescript5.ts")];
  await run(
    process.execPath,
    [...hook, generator, "openapi.json", "-o", "api.d.ts", "--default-non-nullable=false"],
    { cwd: folder },
  );
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
});

/** What the compiler says of files in the folder; empty where it has nothing to say. */
async function compile(...files: string[]): Promise<string> {
  const options = [
    "--strict",
    "--noImplicitAny",
    "false",
    "--allowJs",
    "--checkJs",
    "--noEmit",
    "--types",
    "node",
  ];
  const modules = ["--module", "nodenext", "--target", "es2024"];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const done = run(process.execPath, [tsc, ...options, ...modules, ...files], { cwd: folder });
  return done.then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}

/** examples/node/svc.mjs, as its callers see it, in the generated types. */
const declared = `import type { components, paths } from "./api.d.ts";
type Problem = components["schemas"]["Problem"];
export class SvcError extends Error {
  status: number;
  code: Problem["code"];
  requestId: Problem["request_id"];
  errors: NonNullable<Problem["errors"]>;
}
type Post = paths["/v1/messages"]["post"];
type Events = paths["/v1/events"]["get"];
export function request(
  method: "POST",
  path: "/v1/messages",
  body: Post["requestBody"]["content"]["application/json"],
  idempotencyKey?: string,
): Promise<Post["responses"][202]["content"]["application/json"]>;
export function request(
  method: "GET",
  path: \`/v1/events?\${string}\`,
): Promise<Events["responses"][200]["content"]["application/json"]>;
`;

test("the examples that send and that page through events", async () => {
  writeFileSync(join(folder, "svc.d.mts"), declared);
  for (const name of ["send.mjs", "events.mjs"])
    copyFileSync(join(root, "examples/node", name), join(folder, name));
  expect(await compile("send.mjs", "events.mjs")).toBe("");
});

test("an event is told by its name, and a message has the fields that it has", async () => {
  const client = `import type { components, operations } from "./api.d.ts";
type Event = components["schemas"]["Event"];
export function told(event: Event): string {
  if (event.event === "message.bounced") return event.data.bounce_classification;
  if (event.event === "ip.blacklisted") return event.data.blacklist_zone;
  // @ts-expect-error a delivery has no cause
  if (event.event === "message.delivered") return event.data.bounce_category;
  return event.event_id;
}
type Request = components["schemas"]["MessageRequest"];
const plain: Request = { from: "a@shop.example", to: "b@example.net", subject: "Hi", text: "Hello" };
const named: Request = { ...plain, from: { email: "a@shop.example", name: "A" }, cc: [{ email: "c@example.net" }, "d@example.net"] };
// @ts-expect-error nobody is written to
const lost: Request = { from: "a@shop.example", subject: "Hi", text: "Hello" };
// @ts-expect-error a misspelt field
const misspelt: Request = { ...plain, attachements: [] };
type List = operations["listSuppressions"]["parameters"]["query"];
const query: List = { limit: 10, reason: "hard_bounce" };
// @ts-expect-error no such reason
const wrong: List = { reason: "bounce" };
export const all = [plain, named, lost, misspelt, query, wrong];
`;
  writeFileSync(join(folder, "client.ts"), client);
  expect(await compile("client.ts")).toBe("");
});
