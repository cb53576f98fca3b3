// The world of the documentation's examples on loopback: the server mail.acme.example as a process, the DNS that its reader
// publishes in, example.com's mail host, and the customer's endpoint at shop.example, which verifies webhooks by the very
// function that the documentation prints. A reader has a directory, `svc` in the PATH, and a curl that finds the server.
import { once } from "node:events";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import { join } from "node:path";
import { freePorts, program, startAppliance, type Appliance } from "./appliance.ts";
import { startDnsServer, type DnsServer, type RecordType } from "./dns-server.ts";
import { blocksOf, docsPage } from "./pages.ts";
import type { Reader } from "./shell-blocks.ts";
import { startReceiver, type Receiver } from "./smtp-receiver.ts";
import { selfSigned } from "./webhook-receiver.ts";

export interface DocumentedWorld {
  svc: Appliance;
  receiver: Receiver;
  reader: Reader;
  dnsServer: string;
  /** Publishes the records of every domain, as its owner would. */
  publish(): Promise<void>;
  stop(): Promise<void>;
}

/** A reader in the directory `cwd`, which is made. */
export function readerIn(cwd: string, env: Record<string, string>): Reader {
  const bin = join(cwd, ".bin");
  mkdirSync(bin, { recursive: true });
  symlinkSync(program, join(bin, "svc"));
  return {
    cwd,
    env: { PATH: `${bin}:${process.env["PATH"] ?? ""}`, HOME: cwd, CURL_HOME: cwd, ...env },
    standsFor: [],
  };
}

/** The same reader with a server of his own to set up and to start, on ports that are free. */
export async function ownServer({
  reader,
  dnsServer,
}: Pick<DocumentedWorld, "reader" | "dnsServer">): Promise<Reader> {
  const [http, starttls, tls, inbound] = await freePorts(4);
  const env = {
    SVC_CONFIG: join(reader.cwd, "own/svc.yaml"),
    SVC_DATA_DIR: join(reader.cwd, "own/data"),
    SVC_SOCKET: join(reader.cwd, "own/admin.sock"),
    SVC_HTTP_LISTEN: `127.0.0.1:${http}`,
    SVC_RELAY_STARTTLS: `127.0.0.1:${starttls}`,
    SVC_RELAY_IMPLICIT_TLS: `127.0.0.1:${tls}`,
    SVC_INBOUND_LISTEN: `127.0.0.1:${inbound}`,
    SVC_DNS_SERVERS: dnsServer,
  };
  mkdirSync(join(reader.cwd, "own"));
  return { ...reader, env: { ...reader.env, ...env } };
}

export async function startDocumentedWorld(cwd: string): Promise<DocumentedWorld> {
  mkdirSync(cwd, { recursive: true });
  const receiver = await startReceiver({ address: "127.0.0.25" });
  const dns = await startDnsServer({
    "example.com": { MX: ["10 mx.example.com"] },
    "mx.example.com": { A: [receiver.address] },
    "mail.acme.example": { A: ["127.0.0.1"] },
    "1.0.0.127.in-addr.arpa": { PTR: ["mail.acme.example"] },
    "shop.example": { A: ["127.0.0.1"] },
  });
  const shop = await startShop(cwd);
  const svc = await startAppliance({
    config: {
      hostname: "mail.acme.example",
      public_url: "https://mail.acme.example",
      dns: { servers: [dns.server] },
      outbound: { port: receiver.port, allow_networks: ["127.0.0.0/8"] },
      webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: shop.caFile },
    },
  });
  const certificate = join(svc.dataDir, "tls/cert.pem");
  const reader = readerIn(cwd, { SVC_SOCKET: svc.socket, NODE_EXTRA_CA_CERTS: certificate });
  reader.standsFor.push(
    [/(?<=--url )https:\/\/mail\.acme\.example\b/g, `https://127.0.0.1:${svc.httpPort}`],
    ["https://shop.example/", `https://shop.example:${shop.port}/`],
  );
  const curl = [
    "silent",
    "show-error",
    "fail-with-body",
    `cacert = "${certificate}"`,
    `connect-to = "mail.acme.example:443:127.0.0.1:${svc.httpPort}"`,
    `connect-to = "mail.acme.example:587:127.0.0.1:${svc.starttlsPort}"`,
  ];
  writeFileSync(join(cwd, ".curlrc"), curl.join("\n"));
  writeFileSync(join(cwd, "bounce.eml"), returned);
  return {
    svc,
    receiver,
    reader,
    dnsServer: dns.server,
    publish: () => publishAll(svc, dns),
    async stop() {
      await svc.stop();
      await Promise.all([dns.stop(), receiver.stop(), shop.stop()]);
    },
  };
}

async function publishAll(svc: Appliance, dns: DnsServer): Promise<void> {
  const { json } = await svc.admin("GET", "/v1/domains");
  const domains = json.data as { records: { type: RecordType; name: string; value: string }[] }[];
  for (const { records } of domains)
    for (const { type, name, value } of records) dns.set(name, type, [value]);
}

type Verify = (headers: IncomingHttpHeaders, body: Buffer, secret: string) => boolean;

/** The function that the page about webhooks prints. */
export async function documentedVerify(): Promise<Verify> {
  const blocks = blocksOf({ file: "docs/events.md", text: docsPage("events") });
  const code = blocks.find(({ language }) => language === "js")?.code ?? "";
  const url = `data:text/javascript,${encodeURIComponent(code)}`;
  return ((await import(/* @vite-ignore */ url)) as { verify: Verify }).verify;
}

/** Takes what is signed with the secret that the reader has put into `hook.secret`. */
async function startShop(cwd: string): Promise<{ port: number; caFile: string; stop(): Promise<void> }> {
  const verify = await documentedVerify();
  const identity = await selfSigned({ names: ["shop.example"] });
  const caFile = join(cwd, "shop.pem");
  writeFileSync(caFile, identity.cert);
  const server = createServer(identity, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const secret = readFileSync(join(cwd, "hook.secret"), "utf8").trim();
      response.writeHead(verify(request.headers, Buffer.concat(chunks), secret) ? 200 : 401).end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" && address ? address.port : 0,
    caFile,
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** A returned mail, for `svc bounces explain --file bounce.eml`. */
const returned = `From: MAILER-DAEMON@mx.example.com
To: bounce@bounce.acme.example
Subject: Undelivered Mail Returned to Sender
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary=b

--b
Content-Type: text/plain

Your message could not be delivered.
--b
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com

Final-Recipient: rfc822; ann@example.com
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 No such user
--b--
`.replaceAll("\n", "\r\n");
