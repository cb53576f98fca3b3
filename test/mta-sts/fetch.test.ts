// Fetching a policy from hosts that behave and misbehave: what is not a whole, short answer of 200 is none.
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createTrust } from "../../src/delivery/trust.ts";
import { createHttps, type HttpsDeps } from "../../src/https.ts";
import { createFetch } from "../../src/mta-sts/fetch.ts";
import { createAuthority, type Authority } from "../support/certificates.ts";
import { ManualClock } from "../support/clock.ts";
import { policyText, startPolicyHost, type PolicyHost } from "../support/policy-host.ts";

let authority: Authority;
let host: PolicyHost;
let clock: ManualClock;
beforeAll(async () => {
  authority = await createAuthority("authority");
});
beforeEach(async () => {
  clock = new ManualClock();
  host = await startPolicyHost(await authority.issue(["mta-sts.x.test"]));
  host.publish(policyText("enforce", ["mail.x.test"]));
});
afterEach(() => host.stop());

const answers = (...records: string[]) => ({
  kind: "found" as const,
  records,
  ttlSeconds: 0,
  authenticated: false,
});
const nodata = { kind: "nodata" as const };

const fetching = (over: Partial<HttpsDeps> = {}, domain = "x.test", signal = new AbortController().signal) =>
  createFetch(
    createHttps({
      resolver: {
        a: (name) => Promise.resolve(name.startsWith("mta-sts.") ? answers("127.0.0.1") : nodata),
        aaaa: () => Promise.resolve(nodata),
      },
      allowNetworks: ["127.0.0.0/8"],
      secureContext: createTrust([authority.cert]),
      clock,
      ...over,
    }),
    host.port,
  )(domain, 1, signal);

test("a policy is fetched from the policy host of the domain, by its name", async () => {
  expect(await fetching()).toBe(policyText("enforce", ["mail.x.test"]));
  expect(host.asked).toEqual([`mta-sts.x.test:${host.port}/.well-known/mta-sts.txt`]);
  expect(clock.pending).toBe(0);
});

test("a host with many IPv4 addresses that do not answer is reached over IPv6", async () => {
  const resolver = {
    a: () => Promise.resolve(answers("127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5")),
    aaaa: () => Promise.resolve(answers("::ffff:127.0.0.1")),
  };
  expect(await fetching({ resolver })).toBe(policyText("enforce", ["mail.x.test"]));
});

test("without a content type it is taken, as a web page it is not", async () => {
  host.answer((response) => response.end("plain"));
  expect(await fetching()).toBe("plain");
  host.answer((response) => response.writeHead(200, { "content-type": "text/html" }).end("page"));
  await expect(fetching()).rejects.toThrow("not text/plain");
});

test("a certificate for another name, or of an unknown authority, is refused", async () => {
  await expect(fetching({}, "y.test")).rejects.toThrow(/altnames|Hostname/);
  await expect(fetching({ secureContext: createTrust([]) })).rejects.toThrow();
  expect(host.asked).toEqual([]);
});

test.each([301, 302, 307, 404, 500, 204])("an answer of %i is none, and is not followed", async (status) => {
  const location = `https://mta-sts.x.test:${host.port}/other`;
  host.answer((response) => response.writeHead(status, { location }).end());
  await expect(fetching()).rejects.toThrow(`the answer was ${status}`);
  expect(host.asked.length).toBe(1);
});

test("an answer of more than 64 KB is none", async () => {
  host.answer((response) => response.end("x".repeat(64 * 1024)));
  expect((await fetching()).length).toBe(64 * 1024);
  host.answer((response) => response.end("x".repeat(64 * 1024 + 1)));
  await expect(fetching()).rejects.toThrow("longer than");
});

test("an answer that breaks off is none", async () => {
  host.answer((response) => {
    response.writeHead(200, { "content-length": "100", "content-type": "text/plain" });
    response.write("version", () => response.destroy());
  });
  await expect(fetching()).rejects.toThrow();
});

test.each([
  ["says nothing", () => undefined],
  ["drips", (write: () => void) => write()],
])("a host that %s is given up after a minute", async (_what, act) => {
  let asked = (): void => undefined;
  const came = new Promise<void>((resolve) => (asked = resolve));
  host.answer((response) => {
    act(() => void response.write("v"));
    asked();
  });
  const failed = expect(fetching()).rejects.toThrow("no whole answer within 60 s");
  await came;
  await clock.advance(60_000);
  await failed;
});

test("a host that switches to another protocol has no policy, and does not leave the fetch open", async () => {
  host.answer((response) =>
    response.socket?.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
  );
  await expect(fetching()).rejects.toThrow("switches to another protocol");
  expect(clock.pending).toBe(0);
});

test("a few answers of 1xx may come first, and no more", async () => {
  const hints = (count: number): void =>
    host.answer((response) => {
      for (let i = 0; i < count; i++) response.socket?.write("HTTP/1.1 103 Early Hints\r\n\r\n");
      response.end("plain");
    });
  hints(10);
  expect(await fetching()).toBe("plain");
  hints(11);
  await expect(fetching()).rejects.toThrow("too many answers of 1xx");
});

test("it ends at once where it is given up", async () => {
  const abort = new AbortController();
  let asked = (): void => undefined;
  const came = new Promise<void>((resolve) => (asked = resolve));
  host.answer(() => asked());
  const failed = expect(fetching({}, "x.test", abort.signal)).rejects.toThrow();
  await came;
  abort.abort();
  await failed;
  expect(clock.pending).toBe(0);
});

test.each([
  ["loopback", "127.0.0.1"],
  ["a private network", "10.1.2.3"],
  ["a cloud's metadata", "169.254.169.254"],
  ["loopback in IPv6 form", "::ffff:127.0.0.1"],
])("%s is not dialled unless the operator allows it", async (_what, address) => {
  const resolver = {
    a: () => Promise.resolve(address.includes(":") ? nodata : answers(address)),
    aaaa: () => Promise.resolve(address.includes(":") ? answers(address) : nodata),
  };
  await expect(fetching({ resolver, allowNetworks: [] })).rejects.toThrow("no address that may be dialled");
  expect(host.asked).toEqual([]);
});

test("of several addresses only those are dialled that may be", async () => {
  const resolver = {
    a: () => Promise.resolve(answers("10.1.2.3", "127.0.0.1")),
    aaaa: () => Promise.resolve(nodata),
  };
  expect(await fetching({ resolver })).toContain("STSv1");
});

test("a policy host without an address is none", async () => {
  const resolver = {
    a: () => Promise.resolve({ kind: "nxdomain" as const }),
    aaaa: () => Promise.resolve({ kind: "failed" as const, why: "SERVFAIL" }),
  };
  await expect(fetching({ resolver })).rejects.toThrow("does not resolve");
});
