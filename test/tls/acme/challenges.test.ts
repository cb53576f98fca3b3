// The listener of port 80, over real connections.
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { silentLog, type Log } from "../../../src/log.ts";
import { closedText, createChallenges } from "../../../src/tls/acme/challenges.ts";
import { ManualClock } from "../../support/clock.ts";

async function rig() {
  const clock = new ManualClock();
  const challenges = createChallenges({
    listen: [{ host: "127.0.0.1", port: 0 }],
    secureOrigin: async (host) => (host === "mail.a.test" ? "https://api.a.test:8443" : null),
    clock,
    log: silentLog,
  });
  await challenges.start();
  onTestFinished(() => challenges.stop());
  const [, port = ""] = challenges.addresses()[0]?.address.split(":") ?? [];
  /** Everything that the server says until it closes the connection. */
  const say = async (text: string): Promise<string> => {
    const socket = connect(Number(port), "127.0.0.1");
    let said = "";
    socket.on("data", (chunk: Buffer) => (said += chunk.toString()));
    socket.on("error", () => undefined);
    socket.write(text);
    await once(socket, "close");
    return said;
  };
  const ask = (path: string, host = "mail.a.test", method = "GET") =>
    say(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  return { challenges, clock, say, ask };
}

const folder = "/.well-known/acme-challenge/";

test("a token under way is answered under any name, and no longer than that", async () => {
  const { challenges, ask } = await rig();
  challenges.add("abcdefghijklmnop", "abcdefghijklmnop.mark");
  for (const host of ["mail.a.test", "t.b.test", "192.0.2.1"]) {
    const answer = await ask(`${folder}abcdefghijklmnop`, host);
    expect(answer).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nabcdefghijklmnop\.mark$/s);
  }
  challenges.remove("abcdefghijklmnop");
  expect(await ask(`${folder}abcdefghijklmnop`)).toMatch(/^HTTP\/1\.1 404 /);
});

test.each([
  `${folder}`,
  `${folder}toString`,
  `${folder}__proto__`,
  `${folder}../../etc/passwd`,
  `${folder}abcdefghijklmnop?x`,
  `${folder}${"a".repeat(2_000)}`,
])("what is no token under way is 404, and not redirected: %s", async (path) => {
  const { challenges, ask } = await rig();
  challenges.add("abcdefghijklmnop", "abcdefghijklmnop.mark");
  expect(await ask(path)).toMatch(/^HTTP\/1\.1 404 /);
});

test("other requests for our names go to https; other names, and targets that are no path, are 404", async () => {
  const { ask } = await rig();
  expect(await ask("/a?b=c", "MAIL.a.test:80")).toMatch(
    /^HTTP\/1\.1 301 .*location: https:\/\/api\.a\.test:8443\/a\?b=c\r\n/s,
  );
  for (const [path, host] of [
    ["/", "evil.test"],
    ["http://evil.test/", "mail.a.test"],
    [`/${"a".repeat(3_000)}`, "mail.a.test"],
  ] as const)
    expect(await ask(path, host)).toMatch(/^HTTP\/1\.1 404 /);
  expect(await ask("//evil.test/", "mail.a.test")).toContain(
    "location: https://api.a.test:8443//evil.test/\r\n",
  );
});

test("only GET and HEAD are answered, a body is not read, and each connection has one request", async () => {
  const { ask, say } = await rig();
  expect(await ask("/", "mail.a.test", "DELETE")).toMatch(/^HTTP\/1\.1 405 /);
  expect(await say("POST / HTTP/1.1\r\nHost: mail.a.test\r\nContent-Length: 1000000000\r\n\r\n")).toMatch(
    /^HTTP\/1\.1 405 /,
  );
  const two = await say(
    "GET / HTTP/1.1\r\nHost: mail.a.test\r\n\r\nGET / HTTP/1.1\r\nHost: mail.a.test\r\n\r\n",
  );
  expect(two.match(/HTTP\/1\.1 /g)).toHaveLength(1);
});

test("what is no HTTP, or has a header section without end, is cut off", async () => {
  const { say } = await rig();
  expect(await say("EHLO a.test\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 /);
  expect(await say(`GET / HTTP/1.1\r\nx: ${"a".repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
});

test("a hundred tokens are kept at most, the newest", async () => {
  const { challenges, ask } = await rig();
  for (let n = 0; n < 101; n++) challenges.add(`token-number-${n}`, `proof-${n}`);
  expect(await ask(`${folder}token-number-0`)).toMatch(/ 404 /);
  expect(await ask(`${folder}token-number-1`)).toContain("proof-1");
});

test("clients that only hold connections open do not keep others out", async () => {
  const { challenges, ask } = await rig();
  challenges.add("abcdefghijklmnop", "abcdefghijklmnop.mark");
  const [, port = ""] = challenges.addresses()[0]?.address.split(":") ?? [];
  const idle = Array.from({ length: 250 }, () =>
    connect(Number(port), "127.0.0.1").on("error", () => undefined),
  );
  await Promise.all(idle.map((socket) => once(socket, "connect")));
  for (let n = 0; n < 5; n++) expect(await ask(`${folder}abcdefghijklmnop`)).toMatch(/^HTTP\/1\.1 200 /);
  for (const socket of idle) socket.destroy();
});

test("of a flood few connections a second are served, but all while the ACME server may look", async () => {
  const { challenges, clock, ask } = await rig();
  for (let n = 0; n < 500; n++) expect(await ask("/")).not.toBe("");
  expect(await ask("/")).toBe("");
  challenges.add("abcdefghijklmnop", "abcdefghijklmnop.mark");
  expect(await ask(`${folder}abcdefghijklmnop`)).toMatch(/^HTTP\/1\.1 200 /);
  challenges.remove("abcdefghijklmnop");
  expect(await ask("/")).toBe("");
  await clock.advance(1_000);
  expect(await ask("/")).toMatch(/^HTTP\/1\.1 301 /);
});

test("a taken port is said once and keeps no other address closed; once it is free it is opened", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as AddressInfo;
  const logged: string[] = [];
  const write = (level: string) => (_fields: object, text: string) => void logged.push(`${level}: ${text}`);
  const log: Log = { ...silentLog, info: write("info"), warn: write("warn") };
  const taken = { host: "127.0.0.1", port };
  const challenges = createChallenges({
    listen: [taken, { host: "127.0.0.1", port: 0 }],
    secureOrigin: () => Promise.resolve(null),
    clock: new ManualClock(),
    log,
  });
  onTestFinished(() => challenges.stop());
  await challenges.start();
  await Promise.all([challenges.open(), challenges.open()]);
  expect(challenges.addresses()).toHaveLength(1);
  expect(challenges.closed()).toMatchObject([{ listen: taken, error: { code: "EADDRINUSE" } }]);
  expect(challenges.closed().map(closedText)).toEqual([
    `127.0.0.1:${port} is in use by another program; ss -ltnp 'sport = :${port}' names it`,
  ]);
  const warned = "warn: the ACME server's checks cannot be answered there; it is tried again each minute";
  expect(logged).toEqual([warned]);

  await new Promise((done) => other.close(done));
  await Promise.all([challenges.open(), challenges.open()]);
  expect([challenges.closed(), challenges.addresses()]).toMatchObject([
    [],
    [{}, { address: `127.0.0.1:${port}` }],
  ]);
  expect(logged).toEqual([warned, "info: the ACME server's checks are answered now"]);

  await challenges.stop();
  await challenges.open();
  other.listen(port, "127.0.0.1");
  await once(other, "listening"); // a look behind the stop has opened nothing
  other.close();
});
