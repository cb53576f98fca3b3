// The listener of port 80, over real connections.
import { once } from "node:events";
import { connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { silentLog } from "../../../src/log.ts";
import { createChallenges } from "../../../src/tls/acme/challenges.ts";

async function rig() {
  const challenges = createChallenges({
    listen: [{ host: "127.0.0.1", port: 0 }],
    secureOrigin: async (host) => (host === "mail.a.test" ? "https://api.a.test:8443" : null),
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
  return { challenges, say, ask };
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

test("a port that is taken ends the start with the system's error", async () => {
  const { challenges } = await rig();
  const [, port = ""] = challenges.addresses()[0]?.address.split(":") ?? [];
  const second = createChallenges({
    listen: [{ host: "127.0.0.1", port: Number(port) }],
    secureOrigin: async () => null,
    log: silentLog,
  });
  await expect(second.start()).rejects.toThrow("EADDRINUSE");
});
