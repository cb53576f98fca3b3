// The SMTP relay of the specification of the API, row by row: its ports, its logins, and what a key is not.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadConfig } from "../../src/config.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";
import { TravelClock } from "../support/travel-clock.ts";
import { eventually, scopes, startAsking, type Asking } from "./asking.ts";

const clock = new TravelClock();
const base64 = (text: string): string => Buffer.from(text).toString("base64");
const plain = (user: string, password: string): string => `AUTH PLAIN ${base64(`\0${user}\0${password}`)}`;
const mail = "From: a@ok.test\r\nTo: delivered@simulator.svc\r\nSubject: Hello\r\n\r\nHi\r\n.\r\n";

interface Login {
  id: string;
  username: string;
  password: string;
}

let api: Asking;
let login: Login;
let ports: { submission: number; fallback: number; implicit: number; inbound: number };
const newLogin = (more: object = {}, account?: string): Promise<Login> =>
  api.program.admin("POST", "/v1/smtp_credentials", { name: "test", test: true, ...more }, account);

beforeAll(async () => {
  api = await startAsking({ clock, tls: true });
  login = await newLogin();
  const [submission = 0, fallback = 0] = api.program.mailPorts("smtp");
  ports = {
    submission,
    fallback,
    implicit: api.program.mailPorts("smtps")[0] ?? 0,
    inbound: api.program.mailPorts("inbound")[0] ?? 0,
  };
});
afterAll(() => api.stop());

/** Connected, its banner read, and greeted; under TLS where it says so. */
async function session(
  port: keyof typeof ports,
  how: "clear" | "starttls" | "tls",
  localAddress = "127.0.0.1",
): Promise<SmtpClient> {
  const client = await connectSmtp({ port: ports[port], tls: how === "tls", localAddress });
  await client.answer();
  if (how === "starttls") await client.startTls();
  else await client.command("EHLO client.test");
  return client;
}
const offers = async (client: SmtpClient): Promise<string[]> =>
  (await client.command("EHLO client.test")).lines;

describe("the ports", () => {
  test("are 587 and 2525 with STARTTLS, 465 with TLS from the first byte, and 25 for what comes back", () => {
    const loaded = loadConfig({
      flags: { config: "/svc.yaml" },
      env: {},
      home: "/root",
      uid: 0,
      readFile: (path) => (path === "/svc.yaml" ? '{"hostname":"mail.svc.test"}' : null),
      listDir: () => [],
    });
    if ("faults" in loaded) throw new Error(JSON.stringify(loaded.faults));
    const { relay, inbound } = loaded.config;
    const numbers = (all: object[]) => all.map((one) => ("port" in one ? one.port : null));
    expect(numbers(relay.starttls)).toEqual([587, 2525]);
    expect(numbers(relay.implicitTls)).toEqual([465]);
    expect(numbers(inbound.listen)).toEqual([25]);
  });

  test.each([
    ["587", "submission", "starttls"],
    ["2525", "fallback", "starttls"],
    ["465", "implicit", "tls"],
  ] as const)("%s takes a mail, and the API shows it", async (_number, port, how) => {
    const client = await session(port, how);
    expect((await client.command(plain(login.username, login.password))).code).toBe(235);
    const { text } = await client.submit("a@ok.test", ["delivered@simulator.svc"], mail);
    const id = /^250 2\.0\.0 queued as (msg_[0-9a-z]{26})$/.exec(text)?.[1];
    expect(id, text).toBeTruthy();
    const record = await eventually(async () => {
      const { json } = await api.ask("GET", `/v1/messages/${id}`);
      return json.status === "delivered" && json;
    });
    expect(record).toMatchObject({ source: "smtp", test: true, subject: "Hello", from: "a@ok.test" });
    client.end();
  });

  test.each(["submission", "fallback"] as const)("%s: no AUTH and no mail before TLS", async (port) => {
    const client = await session(port, "clear");
    const before = await offers(client);
    expect(before).toContain("STARTTLS");
    expect(before.filter((one) => one.startsWith("AUTH"))).toEqual([]);
    expect(await client.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 /);
    expect((await client.command(plain(login.username, login.password))).code).toBeGreaterThanOrEqual(500);
    client.end();
    const secure = await session(port, "starttls");
    const after = await offers(secure);
    expect([after.includes("AUTH PLAIN LOGIN"), after.includes("STARTTLS")]).toEqual([true, false]);
    expect(await secure.text("MAIL FROM:<a@ok.test>")).toMatch(/^530 5\.7\.0 /);
    secure.end();
  });

  test("465 offers no STARTTLS, and answers nothing in clear", async () => {
    const client = await session("implicit", "tls");
    const offered = await offers(client);
    expect([offered.includes("AUTH PLAIN LOGIN"), offered.includes("STARTTLS")]).toEqual([true, false]);
    client.end();
    const clear = await connectSmtp({ port: ports.implicit });
    clear.send("EHLO client.test\r\n");
    await clear.closed;
    expect(clear.unread).toEqual([]);
  });

  test("25 is not a relay: no AUTH, under TLS neither, and a stranger's recipient is refused", async () => {
    for (const how of ["clear", "starttls"] as const) {
      const client = await session("inbound", how);
      expect((await offers(client)).filter((one) => one.startsWith("AUTH"))).toEqual([]);
      expect((await client.command(plain(login.username, login.password))).code).toBeGreaterThanOrEqual(500);
      await client.command("MAIL FROM:<a@ok.test>");
      expect(await client.text("RCPT TO:<delivered@simulator.svc>")).toMatch(/^550 5\.7\.1 /);
      client.end();
    }
  });

  test.each(["EHLO", "8BITMIME", "PIPELINING", "SMTPUTF8", "SIZE 26214400", "ENHANCEDSTATUSCODES"])(
    "a relay offers %s",
    async (keyword) => {
      const client = await session("submission", "starttls");
      const offered = await offers(client);
      if (keyword === "EHLO") expect(offered[0]).toMatch(/^mail\.svc\.test\b/);
      else expect(offered).toContain(keyword);
      client.end();
    },
  );
});

describe("TLS is 1.2 at least", () => {
  test("an older version is refused at the handshake", async () => {
    const client = await connectSmtp({ port: ports.submission });
    await client.answer();
    await client.command("EHLO client.test");
    await client.command("STARTTLS");
    await expect(client.secure({ maxVersion: "TLSv1.1" })).rejects.toThrow();
  });
  test("1.2 is taken", async () => {
    const client = await connectSmtp({ port: ports.submission });
    await client.answer();
    await client.command("EHLO client.test");
    await client.command("STARTTLS");
    expect((await client.secure({ maxVersion: "TLSv1.2" })).getProtocol()).toBe("TLSv1.2");
    client.end();
  });
});

describe("the login", () => {
  const attempt = async (...lines: string[]): Promise<string> => {
    const client = await session("implicit", "tls");
    let answer = "";
    for (const line of lines) answer = await client.text(line);
    client.end();
    return answer;
  };

  test("the user name is smtp_ and the account's id", async () => {
    const { id } = await api.program.admin("GET", "/v1/accounts/default");
    const live = await newLogin({ test: false });
    expect(live.username).toBe(`smtp_${id.slice("acct_".length)}`);
    expect(login.username).toBe(`${live.username}_test`);
  });

  test.each([
    ["PLAIN with its answer", () => [plain(login.username, login.password)]],
    ["PLAIN in two steps", () => ["AUTH PLAIN", base64(`\0${login.username}\0${login.password}`)]],
    ["LOGIN", () => ["AUTH LOGIN", base64(login.username), base64(login.password)]],
    ["LOGIN with the user's name", () => [`AUTH LOGIN ${base64(login.username)}`, base64(login.password)]],
  ])("by %s", async (_name, lines) => {
    expect(await attempt(...lines())).toMatch(/^235 2\.7\.0 /);
  });

  test.each(["CRAM-MD5", "XOAUTH2", "DIGEST-MD5", "SCRAM-SHA-256", "ANONYMOUS"])(
    "not by %s",
    async (mechanism) => {
      expect(await attempt(`AUTH ${mechanism}`)).toMatch(/^5\d\d /);
    },
  );

  const wrong: [string, () => Promise<[string, string]> | [string, string]][] = [
    ["a wrong password", () => [login.username, "wrong"]],
    ["no password", () => [login.username, ""]],
    ["another's user name", () => ["smtp_00000000000000000000000000", login.password]],
    [
      "a live login's name with a test one's password",
      () => [login.username.replace(/_test$/, ""), login.password],
    ],
    ...scopes.map((scope): [string, () => [string, string]] => [
      `an API key of scope ${scope} as the password`,
      () => [login.username, api.keys[scope]],
    ]),
    ["an API key as both", () => [api.keys.send, api.keys.send]],
    [
      "a password of another account",
      async () => {
        await api.program.admin("POST", "/v1/accounts", { name: "other" });
        return [login.username, (await newLogin({}, "other")).password];
      },
    ],
    [
      "a revoked password",
      async () => {
        const gone = await newLogin();
        await api.program.admin("POST", `/v1/smtp_credentials/${gone.id}/revoke`);
        return [gone.username, gone.password];
      },
    ],
    [
      "the password before a rotation",
      async () => {
        const old = await newLogin();
        await api.program.admin("POST", `/v1/smtp_credentials/${old.id}/rotate`);
        return [old.username, old.password];
      },
    ],
  ];
  test.each(wrong)("not with %s: 535 5.7.8", async (_name, of) => {
    expect(await attempt(plain(...(await of())))).toMatch(/^535 5\.7\.8 /);
  });

  test("an SMTP password is not an API key", async () => {
    for (const key of [login.password, `svc_live_${login.password}`, `svc_test_${login.password}`])
      expect((await api.ask("GET", "/v1/messages", { key })).status).toBe(401);
  });

  test("many passwords of one name work side by side, and each is shown once", async () => {
    const [one, two] = [await newLogin(), await newLogin()];
    expect([one.username === two.username, one.password === two.password]).toEqual([true, false]);
    for (const { username, password } of [one, two])
      expect(await attempt(plain(username, password))).toMatch(/^235 /);
    const listed = JSON.stringify(await api.program.admin("GET", "/v1/smtp_credentials"));
    for (const { password } of [one, two]) expect(listed).not.toContain(password);
  });

  test("of a suspended account: 535 5.7.8", async () => {
    await api.program.admin("POST", "/v1/accounts", { name: "third" });
    const { username, password } = await newLogin({}, "third");
    expect(await attempt(plain(username, password))).toMatch(/^235 /);
    await api.program.admin("POST", "/v1/accounts/third/suspend");
    expect(await attempt(plain(username, password))).toMatch(/^535 5\.7\.8 /);
  });
});

test("failures of SMTP and REST together lock a source: 454 4.7.0 and 403, for five minutes", async () => {
  const ip = "127.0.0.77";
  for (let n = 0; n < 25; n++)
    await api.ask("GET", "/v1/messages", { key: "wrong", headers: { "x-forwarded-for": ip } });
  for (let round = 0; round < 5; round++) {
    const client = await session("implicit", "tls", ip);
    for (let n = 0; n < 5; n++)
      expect(await client.text(plain(login.username, "wrong"))).toMatch(/^535 5\.7\.8 /);
    client.end();
  }
  const locked = await session("implicit", "tls", ip);
  expect(await locked.text(plain(login.username, login.password))).toMatch(/^454 4\.7\.0 /);
  locked.end();
  expect((await api.ask("GET", "/v1/messages", { headers: { "x-forwarded-for": ip } })).status).toBe(403);
  clock.skip(300_000);
  const free = await session("implicit", "tls", ip);
  expect(await free.text(plain(login.username, login.password))).toMatch(/^235 /);
  free.end();
});
