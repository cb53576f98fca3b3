// Four independent verifiers of DKIM: opendkim-testmsg, Mail::DKIM (Perl), dkimpy (Python) and mailauth. Each looks the keys up
// in the test's DNS and judges many mails in one run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, writeFileSync } from "node:fs";
import { Resolver } from "node:dns/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dkimVerify } from "mailauth";
import { removeFolder } from "./folders.ts";

/** By mail, in the order given: the signatures of the domain with what is said of them, as `rsa-sha256 pass`, sorted. */
export type Verdicts = string[][];

export interface Verifier {
  name: string;
  /** What a mail that verifies gets. */
  good: string[];
  verify(mails: Buffer[], from: KeysIn): Promise<Verdicts>;
}

export interface KeysIn {
  /** Signing domain; signatures of others are left aside. */
  domain: string;
  /** Of a DNS server at 127.0.0.1. */
  dnsPort: number;
  /** Address of the same at port 53, for opendkim. */
  dnsAddress: string;
}

const both = ["ed25519-sha256 pass", "rsa-sha256 pass"];

export const verifiers: Verifier[] = [
  { name: "opendkim", good: both, verify: openDkim },
  // Debian 12's Mail::DKIM knows no Ed25519.
  { name: "Mail::DKIM", good: ["rsa-sha256 pass"], verify: mailDkim },
  { name: "dkimpy", good: both, verify: dkimPy },
  { name: "mailauth", good: both, verify: mailAuth },
];

/** It says whether a mail verifies, not which signature does: so it is given the mail with one at a time. */
async function openDkim(mails: Buffer[], { domain, dnsAddress }: KeysIn): Promise<Verdicts> {
  const algorithms = ["ed25519-sha256", "rsa-sha256"];
  const single = mails.flatMap((mail) =>
    algorithms.map((algorithm) => withSignature(mail, domain, algorithm)),
  );
  return inFolder(single, async (dir) => {
    writeFileSync(join(dir, "resolv.conf"), `nameserver ${dnsAddress}\n`);
    const script = `mount --bind resolv.conf /etc/resolv.conf
for f in *.eml; do
  if said=$(opendkim-testmsg < $f 2>&1) && [ -z "$said" ]; then echo "$f pass"; else echo "$f fail $said" | tr '\\n' ' '; echo; fi
done`;
    const verdicts = await linesOf("unshare", ["-m", "sh", "-c", script], dir, single.length);
    return mails.map((_, i) =>
      algorithms.flatMap((algorithm, j) =>
        (verdicts[i * algorithms.length + j] ?? ["nothing"]).map((said) => `${algorithm} ${said}`),
      ),
    );
  });
}

const perl = `use strict; use warnings; use Mail::DKIM::Verifier; use Mail::DKIM::DNS; use Net::DNS::Resolver;
my ($domain, $port) = splice @ARGV, 0, 2;
Mail::DKIM::DNS::resolver(Net::DNS::Resolver->new(nameservers => ["127.0.0.1"], port => $port));
for my $file (@ARGV) {
  open my $in, "<:raw", $file or die $!;
  my $verifier = Mail::DKIM::Verifier->new;
  $verifier->PRINT(do { local $/; <$in> });
  $verifier->CLOSE;
  for my $signature ($verifier->signatures) {
    next if $signature->domain ne $domain || $signature->algorithm ne "rsa-sha256";
    print "$file ", $signature->algorithm, " ", $signature->result_detail, "\\n";
  }
}
`;

function mailDkim(mails: Buffer[], { domain, dnsPort }: KeysIn): Promise<Verdicts> {
  return inFolder(mails, (dir) =>
    linesOf("perl", ["-e", perl, domain, String(dnsPort), ...names(mails)], dir, mails.length),
  );
}

const python = `import re, sys
import dkim, dns.resolver
domain, port = sys.argv[1:3]
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers, resolver.port = ["127.0.0.1"], int(port)
def txt(name, timeout=5):
    return b"".join(resolver.resolve(name.decode(), "TXT")[0].strings)
for file in sys.argv[3:]:
    message = dkim.DKIM(open(file, "rb").read())
    fields = [value for name, value in message.headers if name.lower() == b"dkim-signature"]
    for i, field in enumerate(fields):
        tags = dkim.parse_tag_value(field)
        if tags[b"d"].decode() != domain:
            continue
        try:
            said = "pass" if message.verify(idx=i, dnsfunc=txt) else "fail"
        except dkim.DKIMException as error:
            said = "fail " + str(error).replace("\\n", " ")
        print(file, tags[b"a"].decode(), said)
`;

function dkimPy(mails: Buffer[], { domain, dnsPort }: KeysIn): Promise<Verdicts> {
  // Debian's own Python, which has Debian's dkimpy.
  return inFolder(mails, (dir) =>
    linesOf("/usr/bin/python3", ["-c", python, domain, String(dnsPort), ...names(mails)], dir, mails.length),
  );
}

async function mailAuth(mails: Buffer[], { domain, dnsPort }: KeysIn): Promise<Verdicts> {
  const dns = new Resolver();
  dns.setServers([`127.0.0.1:${dnsPort}`]);
  const verdicts: Verdicts = [];
  for (const mail of mails) {
    const { results } = await dkimVerify(mail, { resolver: (name) => dns.resolveTxt(name) });
    const own = results.filter(({ signingDomain }) => signingDomain === domain);
    verdicts.push(own.map(({ algo, status }) => `${algo} ${status.result}`).toSorted());
  }
  return verdicts;
}

/** The mail with one signature alone. */
function withSignature(mail: Buffer, domain: string, algorithm: string): Buffer {
  const end = mail.indexOf("\r\n\r\n") + 2;
  const header = mail
    .toString("latin1", 0, end)
    .replace(/^DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*/gim, (field) =>
      field.includes(`a=${algorithm};`) && field.includes(`d=${domain};`) ? field : "",
    );
  return Buffer.concat([Buffer.from(header, "latin1"), mail.subarray(end)]);
}

const nameOf = (index: number): string => `${String(index).padStart(5, "0")}.eml`;
const names = (mails: Buffer[]): string[] => mails.map((_, i) => nameOf(i));

async function inFolder<T>(mails: Buffer[], use: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "svc-dkim-"));
  try {
    for (const [i, mail] of mails.entries()) writeFileSync(join(dir, nameOf(i)), mail);
    return await use(dir);
  } finally {
    removeFolder(dir);
  }
}

/** What the program says of each file, lines of `<file> <verdict>`. */
async function linesOf(command: string, args: string[], dir: string, count: number): Promise<Verdicts> {
  const child = spawn(command, args, { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  let complaint = "";
  child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ended with ${code}: ${complaint}`);
  const verdicts: Verdicts = Array.from({ length: count }, () => []);
  for (const line of said.split("\n")) {
    const [, file, verdict] = /^(\d+)\.eml (.*?) *$/.exec(line) ?? [];
    if (file !== undefined && verdict !== undefined) verdicts[Number(file)]?.push(verdict);
  }
  return verdicts.map((list) => list.toSorted());
}
