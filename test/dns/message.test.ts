// Replies byte by byte: what hostile or broken servers send.
import { Packet } from "dns2";
import fc from "fast-check";
import { expect, test } from "vitest";
import { follow, startChain } from "../../src/dns/aliases.ts";
import * as dns from "../../src/dns/message.ts";
import { encodeQuery, MalformedReply, maxRecords, mixedCase, queryableName } from "../../src/dns/message.ts";
import type { Question, Reply } from "../../src/dns/message.ts";
import { here, leastCpuMs } from "../support/cpu.ts";

const question = { name: "a.test", type: "A" } as const;

function decodeReply(bytes: Buffer, id: number, asked: Question): Reply | null {
  const reply = dns.decodeReply(bytes, id, asked);
  if (reply === "other_case") throw new Error("the case was not asked for");
  return reply;
}

/** A reply to `question`: header, question, then these records as raw bytes. */
function reply(counts: { answers?: number; authorities?: number }, tail: Buffer, flags = 0x8180): Buffer {
  const head = Buffer.from(encodeQuery(7, question, false));
  head.writeUInt16BE(flags, 2);
  head.writeUInt16BE(counts.answers ?? 0, 6);
  head.writeUInt16BE(counts.authorities ?? 0, 8);
  return Buffer.concat([head, tail]);
}

const record = (type: number, data: Buffer, name = "c00c", ttl = "00000e10"): Buffer => {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(data.length);
  const code = Buffer.alloc(2);
  code.writeUInt16BE(type);
  return Buffer.concat([Buffer.from(name, "hex"), code, Buffer.from(`0001${ttl}`, "hex"), length, data]);
};
const a = record(1, Buffer.from([192, 0, 2, 1]));

test("a query asks for recursion, the AD bit and 1232 bytes", () => {
  const query = encodeQuery(0xabcd, { name: "a.test", type: "MX" }, true);
  expect(query.subarray(0, 4).toString("hex")).toBe("abcd0120");
  const parsed = Packet.parse(query);
  expect(parsed.questions[0]).toMatchObject({ name: "a.test", type: 15, class: 1 });
  expect(parsed.additionals[0]).toMatchObject({ type: 41, class: 1232 });
});

test("a query is octet for octet what dns2 writes", () => {
  const label = fc.stringMatching(/^[!-\-/-~]{1,63}$/);
  const name = fc.array(label, { minLength: 1, maxLength: 8 }).map((labels) => labels.join("."));
  const types = fc.constantFrom("A", "AAAA", "MX", "TXT", "TLSA", "PTR", "CNAME" as const);
  fc.assert(
    fc.property(fc.nat(0xffff), name.filter(queryableName), types, fc.boolean(), (id, asked, type, edns) => {
      const packet = new Packet();
      packet.header = new Packet.Header({ id, rd: 1 });
      Object.assign(packet.header, { ad: 1 });
      packet.questions.push(
        new Packet.Question({ name: asked, type: dns.typeCodes[type], class: Packet.CLASS.IN }),
      );
      if (edns) packet.additionals.push(Packet.Resource.EDNS([], { udpPayloadSize: 1232 }));
      expect(encodeQuery(id, { name: asked, type }, edns).toString("hex")).toBe(
        packet.toBuffer().toString("hex"),
      );
    }),
  );
});

test("reads the records of the answer section", () => {
  expect(decodeReply(reply({ answers: 1 }, a), 7, question)).toMatchObject({
    rcode: 0,
    answers: [{ name: "a.test", value: "192.0.2.1", ttlSeconds: 3600 }],
  });
});

test("what is not the reply to this query is left alone", () => {
  const good = reply({ answers: 1 }, a);
  expect(decodeReply(good, 8, question)).toBeNull();
  expect(decodeReply(good, 7, { name: "b.test", type: "A" })).toBeNull();
  expect(decodeReply(good, 7, { name: "a.test", type: "MX" })).toBeNull();
  expect(decodeReply(encodeQuery(7, question, false), 7, question)).toBeNull(); // our own query, echoed
  expect(decodeReply(Buffer.alloc(3), 7, question)).toBeNull();
});

test("a bare header may say that it failed, never that there is nothing", () => {
  expect(decodeReply(Buffer.from("000781820000000000000000", "hex"), 7, question)).toMatchObject({
    rcode: 2,
  });
  expect(decodeReply(Buffer.from("000781830000000000000000", "hex"), 7, question)).toBeNull();
  expect(decodeReply(Buffer.from("000781800000000000000000", "hex"), 7, question)).toBeNull();
});

test.each([
  ["an address of three bytes", record(1, Buffer.from([1, 2, 3]))],
  ["data that runs past the end", a.subarray(0, a.length - 1)],
  ["a name that points at itself", record(1, Buffer.from([1, 2, 3, 4]), "c018")],
  ["a reserved label type", record(1, Buffer.from([1, 2, 3, 4]), "80ff")],
  ["an exchange that runs past its record", record(15, Buffer.from("000a3f6162", "hex"))],
])("%s is malformed", (_, bytes) => {
  expect(() => decodeReply(reply({ answers: 1 }, bytes), 7, question)).toThrow(MalformedReply);
});

test("fewer records than promised are malformed", () => {
  expect(() => decodeReply(reply({ answers: 65_535 }, a), 7, question)).toThrow(MalformedReply);
});

test("long chains of pointers end soon", () => {
  // 8,000 pointers, each to the one before, and 3,000 records whose name starts at the last of them.
  const base = reply({}, Buffer.alloc(0)).length + 12;
  const pointers = Buffer.alloc(2 * 8000);
  for (let i = 0; i < 8000; i++) pointers.writeUInt16BE(0xc000 | (i === 0 ? 12 : base + 2 * (i - 1)), 2 * i);
  const last = (0xc000 | (base + 2 * 7900)).toString(16);
  const tail = Buffer.concat([
    record(65_280, pointers),
    ...Array.from({ length: 3000 }, () => record(1, Buffer.from([1, 2, 3, 4]), last)),
  ]);
  const most = here(2_000);
  const took = leastCpuMs(most, () => {
    expect(() => decodeReply(reply({ answers: 3001 }, tail), 7, question)).toThrow("without end");
  });
  expect(took).toBeLessThan(most);
});

test("of a full message the first records are read, and the rest costs nothing", () => {
  const tail = Buffer.concat(Array.from({ length: 4000 }, () => a));
  expect(decodeReply(reply({ answers: 4000 }, tail), 7, question)?.answers).toHaveLength(maxRecords);
  const garbage = Buffer.concat([...Array.from({ length: maxRecords }, () => a), Buffer.alloc(60_000, 0x80)]);
  expect(decodeReply(reply({ answers: 65_535 }, garbage), 7, question)?.answers).toHaveLength(maxRecords);
});

test("records of other types in the place of an answer are no negative answer, however many", () => {
  const alias = record(16, Buffer.from([1, 120]));
  const tail = Buffer.concat(Array.from({ length: 600 }, () => alias));
  expect(() => decodeReply(reply({ answers: 600 }, tail), 7, question)).toThrow(MalformedReply);
});

test("where the case counts, a reply in another is distinguished from one in the same, before it is read", () => {
  const mixed = { name: "A.tEsT", type: "A" } as const;
  const asked = Buffer.from(encodeQuery(7, mixed, false));
  asked.writeUInt16BE(0x8180, 2);
  asked.writeUInt16BE(1, 6);
  expect(dns.decodeReply(Buffer.concat([asked, a]), 7, mixed, true)).toMatchObject({
    answers: [{ name: "a.test", value: "192.0.2.1" }],
  });
  expect(dns.decodeReply(reply({ answers: 9 }, Buffer.from("80ff", "hex")), 7, mixed, true)).toBe(
    "other_case",
  );
  expect(dns.decodeReply(reply({ answers: 1 }, a), 7, mixed)).toMatchObject({ rcode: 0 });
});

test("a name in a random case is the same name, and seldom the same twice", () => {
  const name = "_dmarc.mail-1.a-rather-long-name.example";
  const drawn = new Set(Array.from({ length: 50 }, () => mixedCase(name)));
  expect([...drawn].every((each) => each.toLowerCase() === name)).toBe(true);
  expect(drawn.size).toBeGreaterThan(45);
});

test("an answer about other names says nothing about this one", () => {
  const other = decodeReply(
    reply({ answers: 1 }, record(1, Buffer.from([192, 0, 2, 66]), "04657669" + "6c00")),
    7,
    question,
  );
  expect(other && follow(startChain("a.test"), other, "A")?.answer).toMatchObject({ kind: "failed" });
  const otherClass = decodeReply(
    reply({ answers: 1 }, Buffer.from(a.toString("hex").replace("00010001", "00010003"), "hex")),
    7,
    question,
  );
  expect(otherClass && follow(startChain("a.test"), otherClass, "A")?.answer).toMatchObject({
    kind: "failed",
  });
});

test("a chain that a reply leaves unfinished is asked again at its end", () => {
  const chain = startChain("a.test");
  const half = decodeReply(reply({ answers: 1 }, record(5, Buffer.from("0162c00e", "hex"))), 7, question);
  expect(half && follow(chain, half, "A")).toBeNull();
  expect(chain.name).toBe("b.test");
});

test("name servers in place of an answer are a referral, an SOA is a negative answer with its time", () => {
  const ns = record(2, Buffer.from("026e73c00c", "hex"));
  expect(decodeReply(reply({ authorities: 1 }, ns), 7, question)).toMatchObject({ referral: true });
  const soa = record(6, Buffer.from("c00cc00c" + "00000001".repeat(4) + "0000003c", "hex"));
  expect(decodeReply(reply({ authorities: 2 }, Buffer.concat([ns, soa])), 7, question)).toMatchObject({
    referral: false,
    negativeTtlSeconds: 60,
  });
});

test("no bytes make it throw anything else, or hang", () => {
  const good = reply({ answers: 2 }, Buffer.concat([a, record(15, Buffer.from("000ac00c", "hex"))]));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 })), {
        minLength: 1,
        maxLength: 6,
      }),
      fc.nat(good.length),
      (flips, length) => {
        const bytes = Buffer.from(good.subarray(0, length));
        for (const [at, value] of flips) if (at >= 2 && at < length) bytes[at] = value;
        try {
          decodeReply(bytes, 7, question);
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedReply);
        }
      },
    ),
    { numRuns: 2000 },
  );
});

test("names that a query can carry", () => {
  expect(["a", "_dmarc.a.test", "xn--com-0da.test", `${"a".repeat(63)}.test`].every(queryableName)).toBe(
    true,
  );
  expect(
    ["", ".", "a.", "a..b", `${"a".repeat(64)}.test`, "é.test", "a b", `${"a.".repeat(127)}`].some(
      queryableName,
    ),
  ).toBe(false);
});
