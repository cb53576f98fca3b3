// The command line of `svc domains publish`, up to the first octet to a name server: what is missing or wrong is said, exit 2.
// What it does with name servers: test/peers/publish.test.ts.
import { createServer } from "node:net";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { replyTo, secret, signed, u16, wire } from "../support/tsig.ts";
import { fakeDaemon, scratch, svc } from "./world.ts";

const secretText = secret.toString("base64");
const record = {
  purpose: "dmarc",
  type: "TXT",
  name: "_dmarc.acme.example",
  value: "v=DMARC1; p=none",
  required: false,
};

async function publish(keyFile: string, ...flags: string[]) {
  const { socket } = await fakeDaemon({
    "GET /v1/domains/acme.example": { json: { name: "acme.example", records: [record] } },
  });
  return svc(["domains", "publish", "acme.example", "--key-file", keyFile, ...flags], { socket });
}

function keyFile(text: string, mode = 0o600): string {
  const file = join(scratch(), "tsig.key");
  writeFileSync(file, text, { mode });
  return file;
}

const good = `key "publish" { algorithm hmac-sha256; secret "${secretText}"; };\n`;

test("a server and a key file are needed", async () => {
  const noServer = await publish(keyFile(good));
  expect([noServer.code, noServer.err]).toEqual([2, expect.stringContaining("--server")]);
  const noKey = await svc(["domains", "publish", "acme.example", "--server", "ns1.acme.example"]);
  expect([noKey.code, noKey.err]).toEqual([2, expect.stringContaining("--key-file")]);
});

test.each([
  ["https://ns1.acme.example", "expected a host name or an address"],
  ["ns1.acme.example:dns", "expected a host name or an address"],
])("the server %s is refused", async (server, why) => {
  const ran = await publish(keyFile(good), "--server", server);
  expect([ran.code, ran.err]).toEqual([2, expect.stringContaining(why)]);
});

test("a span that is none is refused before anything is done", async () => {
  const ran = await publish(keyFile(good), "--server", "127.0.0.1", "--wait", "soon");
  expect([ran.code, ran.err]).toEqual([2, expect.stringContaining('--wait: found "soon"')]);
});

test("a key file that is missing or has no key is refused, and its secret is not shown", async () => {
  const gone = await publish("/nowhere/tsig.key", "--server", "127.0.0.1");
  expect([gone.code, gone.err]).toEqual([2, expect.stringContaining("the file does not exist")]);
  const md5 = await publish(keyFile(good.replace("sha256", "md5")), "--server", "127.0.0.1");
  expect([md5.code, md5.err]).toEqual([2, expect.stringContaining("found the algorithm hmac-md5")]);
  expect(md5.err).not.toContain(secretText);
});

test("a server that is away is exit 1 with its address; a key that others can read is remarked on", async () => {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as { port: number };
  await new Promise((done) => server.close(done));
  const ran = await publish(keyFile(good, 0o644), "--server", `127.0.0.1:${port}`, "--dry-run");
  expect(ran.code).toBe(1);
  expect(ran.err).toContain(`127.0.0.1:${port} cannot be reached: connect ECONNREFUSED`);
  expect(ran.err).toMatch(/can be read by others, who can then change the zone: chmod 600/);
});

test("a terminal is asked before anything is changed, and told what would be", async () => {
  // Answers all as a primary that has nothing of the zone but its SOA.
  const soa = Buffer.concat([wire("acme.example"), u16(6, 1, 0, 60, 22), Buffer.alloc(22)]);
  const server = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      const request = chunk.subarray(2);
      const isUpdate = request.readUInt8(2) >> 3 === 5;
      const reply = Buffer.concat([
        replyTo(request, isUpdate ? 0xa800 : 0x8403),
        isUpdate ? Buffer.alloc(0) : soa,
      ]);
      reply.writeUInt16BE(isUpdate ? 0 : 1, 8);
      const whole = signed(request, reply);
      socket.write(Buffer.concat([u16(whole.length), whole]));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { port: number };
  const { socket } = await fakeDaemon({
    "GET /v1/domains/acme.example": { json: { name: "acme.example", records: [record] } },
  });
  const args = ["--key-file", keyFile(good), "--server", `127.0.0.1:${port}`];
  const asked = await svc(["domains", "publish", "acme.example", ...args], {
    socket,
    tty: true,
    stdin: "n\n",
  });
  expect([asked.code, asked.err]).toEqual([
    1,
    expect.stringContaining(`Publish 1 of these records at 127.0.0.1:${port}? [y/N]`),
  ]);
  expect(asked.out).toBe(
    `zone acme.example at 127.0.0.1:${port}\n+ TXT  _dmarc.acme.example  (dmarc: new)\n     v=DMARC1; p=none\n`,
  );
  const told = await svc(["domains", "publish", "acme.example", ...args, "--yes"], { socket });
  expect([told.code, told.err]).toEqual([
    1,
    expect.stringContaining("accepted the update and does not show the TXT record at _dmarc.acme.example"),
  ]);
});
