import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { configuredSocket, socketCandidates } from "../../src/cli/daemon-address.ts";
import { nouns } from "../../src/cli/program.ts";
import { fakeDaemon, page, scratch, svc } from "./world.ts";

const problem = (status: number, code: string, more: object = {}) => ({
  status,
  type: "application/problem+json",
  json: {
    type: "https://x/errors",
    title: code,
    status,
    detail: "The reason.",
    instance: "/v1/keys",
    code,
    request_id: "req_7",
    ...more,
  },
});

test.each([
  [400, "invalid_request", 2],
  [404, "resource_not_found", 3],
  [405, "method_not_allowed", 1],
  [409, "conflict", 5],
  [422, "validation_failed", 1],
  [500, "internal_error", 1],
  [503, "service_overloaded", 1],
])("HTTP %i (%s) ends a command with exit %i and says why", async (status, code, exit) => {
  const { socket } = await fakeDaemon({ "GET /v1/keys": problem(status, code) });
  const ran = await svc(["keys", "list"], { socket });
  expect(ran).toMatchObject({ code: exit, out: "" });
  expect(ran.err).toContain(`svc: The reason. (${code})\n`);
});

test.each([
  [401, "invalid_api_key"],
  [403, "scope_insufficient"],
])("HTTP %i in the envelope form ends a command with exit 4", async (status, code) => {
  const error = { code, message: "Not you.", request_id: "req_8", required_scope: "admin" };
  const { socket } = await fakeDaemon({ "GET /v1/keys": { status, json: { error } } });
  const ran = await svc(["keys", "list"], { socket });
  expect(ran.code).toBe(4);
  expect(ran.err).toContain(`svc: Not you. (${code})`);
});

test("every problem of a refused request is a line of its own, and the next step is named", async () => {
  const { socket } = await fakeDaemon({
    "POST /v1/messages": problem(422, "recipient_suppressed", {
      errors: [
        { field: "to[0]", code: "recipient_suppressed", issue: "is suppressed" },
        { field: "subject", code: "validation_failed", issue: "holds \u001b[31ma line break" },
      ],
      suppressed_recipients: [
        { email: "a@x.example", reason: "complaint", created_at: "2026-11-27T09:00:00.000Z" },
      ],
    }),
  });
  const ran = await svc(
    ["send", "--from", "h@x.example", "--to", "a@x.example", "--subject", "s", "--text", "t"],
    { socket },
  );
  expect(ran.code).toBe(1);
  expect(ran.err.split("\n")).toEqual([
    "svc: The reason. (recipient_suppressed)",
    "  to[0]: is suppressed",
    "  subject: holds \\x1b[31ma line break",
    "See why: svc suppressions show a@x.example",
    "",
  ]);
});

test.each([
  ["messages", "msg_x"],
  ["webhooks", "whk_x"],
  ["domains", "\u001b[2J.example"],
])("an id that is not found is named, with the command that lists them: %s %s", async (noun, id) => {
  const path = `/v1/${noun}/${encodeURIComponent(id)}`;
  const { socket } = await fakeDaemon({
    [`GET ${path}`]: problem(404, "resource_not_found", { instance: path }),
  });
  const ran = await svc([noun, "show", id], { socket });
  expect(ran).toMatchObject({ code: 3, out: "" });
  expect(ran.err.split("\n").slice(1)).toEqual([
    `"${id.replace("\u001b", "\\x1b")}" was not found; list them: svc ${noun} list`,
    "",
  ]);
});

test("an unverified sender is shown each record that is wrong, and the way once", async () => {
  const detail = "from: x.example is pending: … run: svc domains verify x.example";
  const { socket } = await fakeDaemon({
    "POST /v1/messages": problem(422, "sender_not_verified", {
      detail,
      domain: "x.example",
      errors: [{ field: "from", code: "sender_not_verified", issue: "is pending" }],
      failing_records: [
        { purpose: "spf", type: "TXT", name: "bounce.x.example", value: "v=spf1", issue: "There is none." },
      ],
    }),
  });
  const ran = await svc(
    ["send", "--from", "h@x.example", "--to", "a@x.example", "--subject", "s", "--text", "t"],
    { socket },
  );
  expect(ran.err.split("\n")).toEqual([
    `svc: ${detail} (sender_not_verified)`,
    "  TXT bounce.x.example: There is none.",
    "",
  ]);
});

test("what the API does not have says where it is done", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/keys": problem(404, "resource_not_found", { detail: "There is no such path." }),
  });
  const ran = await svc(["keys", "list"], { socket });
  expect(ran.code).toBe(3);
  expect(ran.err).toContain("run this command on the server, over its admin socket");
  expect(ran.err).toContain("the service is of another version: compare svc --version and svc status");
});

test("a server elsewhere whose certificate is not trusted is distinguished from one that is down", async () => {
  const file = join(scratch(), "key");
  writeFileSync(file, "svc_live_x\n");
  const pem = (name: string): string =>
    readFileSync(new URL(`../fixtures/tls/mail.test.${name}.pem`, import.meta.url), "utf8");
  const server = createTlsServer({ key: pem("key"), cert: pem("cert") });
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const ran = await svc(["domains", "list", "--url", `https://127.0.0.1:${port}`, "--api-key-file", file]);
  expect(ran.code).toBe(6);
  expect(ran.err).toContain(`the certificate of https://127.0.0.1:${port} is not trusted here: `);
  expect(ran.err).toContain("NODE_EXTRA_CA_CERTS=FILE svc ");
});

test("under --json an error is the API's own body, on stderr", async () => {
  const answer = problem(404, "resource_not_found");
  const { socket } = await fakeDaemon({ "GET /v1/messages/msg_x": answer });
  const ran = await svc(["messages", "show", "msg_x", "--json"], { socket });
  expect(ran).toMatchObject({ code: 3, out: "" });
  expect(JSON.parse(ran.err)).toEqual(answer.json);
});

test("an error of the API names commands by the name that the program was called by, but not under --json", async () => {
  const detail = "x.test is not a domain of this account. Run: svc domains add x.test; mail.svc is another";
  const errors = [
    { field: "a", issue: "see svc domains list" },
    { field: "b", issue: "no" },
  ];
  const json = { code: "validation_failed", status: 422, detail, errors };
  const { socket } = await fakeDaemon({ "GET /v1/status": { status: 422, json } });
  const npx = await svc(["status"], { socket, env: { npm_command: "exec" } });
  expect(npx.err).toContain("Run: npx svc domains add x.test; mail.svc is another (validation_failed)\n");
  expect(npx.err).toContain("  a: see npx svc domains list\n");
  const plain = await svc(["status"], { socket });
  expect(plain.err).toContain("Run: svc domains add x.test;");
  const asData = await svc(["status", "--json"], { socket, env: { npm_command: "exec" } });
  expect(JSON.parse(asData.err)).toEqual(json);
});

test("without a daemon the error says where it looked and what to run, with exit 6", async () => {
  const env = { RUNTIME_DIRECTORY: "/run/none", STATE_DIRECTORY: "/var/none", SVC_CALLED_AS: "bin/svc" };
  const ran = await svc(["status"], { env });
  expect(ran).toMatchObject({ code: 6, out: "" });
  expect(ran.err).toContain(
    "no daemon answers at /run/none/admin.sock (not there), /var/none/admin.sock (not there)\n",
  );
  expect(ran.err).toContain("Start it: `bin/svc serve`");
});

test("the usual places are looked at in order; a socket that is named is the only one", () => {
  const person = { env: { XDG_RUNTIME_DIR: "/run/user/4", SVC_DATA_DIR: "/data" }, home: "/home/a", uid: 4 };
  expect(socketCandidates(undefined, person)).toEqual([
    "/data/admin.sock",
    "/run/user/4/svc/admin.sock",
    "/home/a/.local/share/svc/admin.sock",
    "/run/svc/admin.sock",
  ]);
  expect(socketCandidates(undefined, { ...person, env: { ...person.env, SVC_SOCKET: "/b" } })).toEqual([
    "/b",
  ]);
  expect(socketCandidates("/a", { ...person, env: { SVC_SOCKET: "/b" } })).toEqual(["/a"]);
  expect(socketCandidates(undefined, { env: {}, home: "/root", uid: 0 })).toEqual([
    "/run/svc/admin.sock",
    "/var/lib/svc/admin.sock",
  ]);
});

test("a socket file without a listener counts as no daemon", async () => {
  const stale = join(scratch(), "admin.sock");
  writeFileSync(stale, "");
  const ran = await svc(["status"], { socket: stale });
  expect(ran.code).toBe(6);
  expect(ran.err).toContain(`${stale} (connection refused)`);
});

test("the next usual place is tried where the first has no daemon", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/keys": page([]) });
  const runtime = scratch();
  mkdirSync(join(runtime, "svc"));
  const env = { XDG_RUNTIME_DIR: runtime, SVC_DATA_DIR: socket.replace("/admin.sock", "") };
  expect(await svc(["keys", "list"], { env })).toMatchObject({ code: 0, err: "No keys.\n" });
});

test("another data_dir of the configuration is found by itself", async () => {
  const home = scratch();
  mkdirSync(join(home, ".config", "svc"), { recursive: true });
  writeFileSync(join(home, ".config", "svc", "svc.yaml"), "hostname: a.example\ndata_dir: /srv/mail\n");
  expect(await configuredSocket({ env: {}, home, uid: 4 })).toBe("/srv/mail/admin.sock");
});

test("account and operator are sent to the daemon, from flags or from the environment", async () => {
  const { socket, seen } = await fakeDaemon({ "GET /v1/keys": page([]) });
  await svc(["keys", "list", "--account", "news", "--as", "bob"], { socket });
  await svc(["keys", "list"], { socket, env: { SVC_ACCOUNT: "shop", SUDO_USER: "eve\u00e9" } });
  await svc(["keys", "list"], { socket });
  expect(seen.map(({ headers }) => [headers["x-svc-account"], headers["x-svc-operator"]])).toEqual([
    ["news", "bob"],
    ["shop", "eve?"],
    [undefined, "ann"],
  ]);
  expect(await svc(["keys", "list", "--account", "a\r\nb"], { socket })).toMatchObject({ code: 2 });
});

test.each([
  [["--url", "http://x.example"], "expected an https address"],
  [["--url", "https://x.example"], "--url needs --api-key-file"],
  [["--url", "https://x.example", "--api-key-file", "/none"], "the file does not exist"],
])("reaching a server elsewhere takes https and a key: %j", async (flags, said) => {
  const ran = await svc(["keys", "list", ...flags]);
  expect(ran.code).toBe(2);
  expect(ran.err).toContain(said);
});

test("a server elsewhere that does not answer is exit 6", async () => {
  const file = join(scratch(), "key");
  writeFileSync(file, "svc_live_x\n");
  const server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  const ran = await svc(["keys", "list", "--url", `https://127.0.0.1:${port}`, "--api-key-file", file]);
  expect(ran.code).toBe(6);
  expect(ran.err).toContain("does not answer");
});

test("an answer that breaks off is exit 6, and one that is not JSON is exit 1", async () => {
  const { socket } = await fakeDaemon({
    "GET /v1/keys": { text: '{"data":[', cut: true },
    "GET /v1/webhooks": { text: "<html>" },
  });
  expect((await svc(["keys", "list"], { socket })).code).toBe(6);
  expect((await svc(["webhooks", "list"], { socket })).code).toBe(1);
});

test.each([
  [["keyz"], 'unknown command "keyz"\nDid you mean "keys"?\nList the commands: svc help\n'],
  [["frobnicate"], 'unknown command "frobnicate"\nList the commands: svc help\n'],
  [["frobnicate", "--help"], 'unknown command "frobnicate"'],
  [["--help", "mesages"], 'Did you mean "messages"?'],
  [["--json", "--account", "shop", "statsu", "-h"], 'Did you mean "status"?'],
  [["sup", "list"], 'Did you mean "suppressions"?'],
  [
    ["keys", "lst"],
    'unknown command "keys lst"\nDid you mean "keys list"?\nList the commands: svc help keys\n',
  ],
  [["key", "--account=shop", "rovoke", "key_1"], 'Did you mean "keys revoke"?'],
  [["keys", "frobnicate", "--help"], 'unknown command "keys frobnicate"'],
  [["stats", "sumary"], 'Did you mean "stats summary"?'],
  [["status", "extra"], "too many arguments"],
  [["keys", "create"], "required option '--name <name>' not specified"],
  [["keys", "list", "--limit", "0"], "--limit: found"],
  [["messages", "list", "--since", "soon"], '--since: found "soon", expected a time'],
  [
    ["keys", "create", "--name", "x", "--scope", "all"],
    '--scope: found "all", expected send, suppressions, reporting, admin',
  ],
  [["webhooks", "update", "whk_1"], "nothing to change"],
  [["keys", "list", "--nope"], "unknown option '--nope'"],
  [[], "Usage: svc"],
])("a wrong command line %j is exit 2 and says what is wrong", async (args, said) => {
  const ran = await svc(args, { socket: "/nowhere.sock" });
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain(said);
});

test("help and version go to stdout with exit 0", async () => {
  expect(await svc(["--version"])).toEqual({ code: 0, out: "0.0.0-test\n", err: "" });
  expect((await svc(["help", "exit-codes"])).out).toContain("\n6          the daemon is not reachable\n");
  for (const args of [
    ["help", "webhook"],
    ["webhooks", "--help"],
  ]) {
    const ran = await svc(args);
    expect(ran).toMatchObject({ code: 0, err: "" });
    expect(ran.out).toContain("pause <id>");
  }
  expect((await svc(["help", "webhooks", "create"])).out).toContain("--events");
  expect((await svc(["stats", "--help"])).code).toBe(0);
});

test("help lists every noun once, under what one wants to do", async () => {
  const { out } = await svc(["help"]);
  const headings = ["Set up and run the server:", "Send mail and follow it:", "Manage senders:"];
  for (const heading of headings) expect(out).toContain(`\n${heading}\n`);
  const under = (heading: string) => out.slice(out.indexOf(heading)).split("\n\n")[0];
  expect(under("Manage senders:")).toMatch(/^ {2}domains.*^ {2}keys/ms);
  for (const { name, alias } of nouns) {
    const line = new RegExp(`^ {2}${name}${alias === undefined ? "" : `\\|${alias}`} `, "gm");
    expect(out.match(line), name).toHaveLength(1);
  }
});

test("help api lists the clients to copy and what they read; help api LANGUAGE shows those of one", async () => {
  const listed = await svc(["help", "api"]);
  expect(listed.code).toBe(0);
  const languages = [...listed.out.matchAll(/^ {2}([a-z]+) +(?:svc|client)\./gm)].map(([, name]) => name);
  expect(languages).toEqual(["curl", "go", "node", "php", "python", "ruby"]);
  expect(listed.out).toMatch(/SVC_BASE_URL +.*public_url/s);

  const shown = await svc(["help", "api", "python"]);
  expect(shown.code).toBe(0);
  const files = [...shown.out.matchAll(/^==> python\/(\S+) <==$/gm)].map(([, name]) => name);
  expect(files).toEqual(["svc.py", "events.py", "send.py", "webhook.py"]);
  const text = readFileSync(join(import.meta.dirname, "../../examples/python/webhook.py"), "utf8");
  expect(shown.out).toContain(text);
  expect(shown.err).toContain("SVC_BASE_URL");
});

test.each([
  [["help", "api", "cobol"], "there is one in curl, go, node, php, python, ruby"],
  [["help", "api", "../src"], "found no example client"],
  [["help", "webhoks"], 'Did you mean "webhooks"?'],
  [["help", "exit-code"], 'Did you mean "exit-codes"?'],
  [["help", "webhooks", "creat"], 'Did you mean "webhooks create"?'],
])("%j is exit 2", async (args, said) => {
  const ran = await svc(args);
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain(said);
});

test("an account that does not exist is named, with the command that lists those that do", async () => {
  const detail = 'There is no account "shpo".';
  const refused = {
    title: "Not found",
    status: 404,
    detail,
    code: "resource_not_found",
    field: "X-Svc-Account",
  };
  const { socket } = await fakeDaemon({ "GET /v1/keys": { status: 404, json: refused } });
  const ran = await svc(["--account", "shpo", "keys", "list"], { socket });
  expect(ran).toMatchObject({ code: 3, out: "" });
  expect(ran.err).toBe(
    `svc: --account: ${detail} (resource_not_found)\nList the accounts: svc accounts list\n`,
  );
});

test.each([
  ["accounts", "/v1/accounts/nix"],
  ["pools", "/v1/ip_pools/nix"],
])("what is not found of %s is named, with the command that lists them", async (noun, path) => {
  const refused = {
    title: "Not found",
    status: 404,
    detail: "None.",
    code: "resource_not_found",
    instance: path,
  };
  const { socket } = await fakeDaemon({ [`GET ${path}`]: { status: 404, json: refused } });
  const ran = await svc([noun, "show", "nix"], { socket });
  expect(ran.code).toBe(3);
  expect(ran.err).toContain(`"nix" was not found; list them: svc ${noun} list`);
});
