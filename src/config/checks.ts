// Rules between options, and the files that options name. Each sees what could be read
// (a value that was itself at fault is undefined) and answers what is wrong; all run, so that all faults are reported at once.
import { BlockList, isIP } from "node:net";
import { parse } from "yaml";
import type { z } from "zod";
import type { SmartHostTls } from "../model/tls.ts";
import type { ReadFile } from "./files.ts";
import type { OptionPath, someOptions } from "./options.ts";
import { shapingFaults } from "./shaping-file.ts";
import type { ListenAddress } from "./values.ts";

export type Read = z.output<typeof someOptions>;
export interface Violation {
  path: OptionPath;
  found: string;
  expected: string;
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

export function isLoopback(listen: ListenAddress): boolean {
  return "path" in listen || loopback.check(listen.host, isIP(listen.host) === 6 ? "ipv6" : "ipv4");
}

export function listenText(listen: ListenAddress): string {
  if ("path" in listen) return `unix:${listen.path}`;
  return isIP(listen.host) === 6 ? `[${listen.host}]:${listen.port}` : `${listen.host}:${listen.port}`;
}

export function crossChecks(
  read: Read,
  around: {
    dev: boolean;
    readFile: ReadFile;
    passwordGiven: boolean;
    isGiven: (path: OptionPath) => boolean;
  },
): Violation[] {
  return [
    ...certificate(read),
    ...plainHttp(read),
    ...plainSmtp(read, around.isGiven),
    ...externalAccount(read),
    ...smartHost(read, around.passwordGiven),
    ...listeners(read),
    ...(around.dev ? devStaysLocal(read) : []),
    ...files(read, around.readFile),
  ];
}

function certificate(read: Read): Violation[] {
  const mode = read["tls.mode"];
  const [cert, key] = [read["tls.cert"], read["tls.key"]];
  const needed =
    mode === "files" ? "set where tls.mode is files" : "set where the other one of tls.cert and tls.key is";
  const wrong: Violation[] = [];
  if (cert === null && (mode === "files" || typeof key === "string"))
    wrong.push({ path: "tls.cert", found: "nothing", expected: needed });
  if (key === null && (mode === "files" || typeof cert === "string"))
    wrong.push({ path: "tls.key", found: "nothing", expected: needed });
  return wrong;
}

/** Plain HTTP never leaves the machine, unless a proxy in front of it speaks TLS. */
function plainHttp(read: Read): Violation[] {
  const proxies = read["http.trusted_proxies"];
  if (read["tls.mode"] !== "off" || proxies === undefined || proxies.length > 0) return [];
  const open = (read["http.listen"] ?? []).filter((listen) => !isLoopback(listen));
  if (open.length === 0) return [];
  const expected = `acme, files or self-signed, or http.listen on loopback only (now ${open.map(listenText).join(", ")}), or http.trusted_proxies set`;
  return [{ path: "tls.mode", found: '"off"', expected }];
}

/** SMTP is taken with TLS only: without a certificate it is off, and the configuration must say so. */
function plainSmtp(read: Read, isGiven: (path: OptionPath) => boolean): Violation[] {
  if (read["tls.mode"] !== "off") return [];
  return (["relay.starttls", "relay.implicit_tls"] as const)
    .filter((path) => isGiven(path) && (read[path] ?? []).length > 0)
    .map((path) => ({
      path,
      found: (read[path] ?? []).map(listenText).join(", "),
      expected: "no address where tls.mode is off: SMTP is taken with TLS only",
    }));
}

function externalAccount(read: Read): Violation[] {
  const paths = ["tls.acme.eab_key_id", "tls.acme.eab_mac_key_file"] as const;
  const missing = paths.filter((path) => read[path] === null);
  return missing.length === 1
    ? missing.map((path) => ({
        path,
        found: "nothing",
        expected: `a value, as ${paths.find((one) => one !== path)} has one`,
      }))
    : [];
}

function smartHost(read: Read, passwordGiven: boolean): Violation[] {
  const host = read["outbound.smart_host.host"];
  const user = read["outbound.smart_host.user"];
  const file = read["outbound.smart_host.password_file"];
  const wrong: Violation[] = [];
  const password = passwordGiven || typeof file === "string";
  if (host === null && (typeof user === "string" || password))
    wrong.push({
      path: "outbound.smart_host.host",
      found: "nothing",
      expected: "the server that the login is for",
    });
  if (user === null && password)
    wrong.push({
      path: "outbound.smart_host.user",
      found: "nothing",
      expected: "the login that the password is for",
    });
  if (typeof user === "string" && !password && file === null)
    wrong.push({
      path: "outbound.smart_host.password_file",
      found: "nothing",
      expected: "the file with the password of that login",
    });
  const tls = read["outbound.smart_host.tls"];
  const unverified = read["outbound.smart_host.allow_unverified_password"];
  if (typeof user === "string" && tls !== undefined && tls !== "verify" && !(unverified && tls !== "none"))
    wrong.push({ path: "outbound.smart_host.tls", found: `"${tls}"`, expected: passwordNeeds(tls) });
  if (host === null && read["outbound.sign"] === false)
    wrong.push({ path: "outbound.sign", found: "false", expected: "true, unless outbound.smart_host signs" });
  return wrong;
}

/** Who answers in the smart host's place would get the password. */
function passwordNeeds(tls: Exclude<SmartHostTls, "verify">): string {
  const verify = "verify where a password is sent, so that no other host gets it";
  return tls === "none"
    ? `${verify}: it is never sent in clear text`
    : `${verify}; outbound.smart_host.allow_unverified_password: true sends it under any certificate`;
}

const listening = [
  "http.listen",
  "relay.starttls",
  "relay.implicit_tls",
  "inbound.listen",
  "metrics.listen",
  "tls.acme.http_listen",
] as const;

/** Only tls.mode: acme opens tls.acme.http_listen. */
const opened = (read: Read): (typeof listening)[number][] =>
  listening.filter((path) => path !== "tls.acme.http_listen" || read["tls.mode"] === "acme");

function listeners(read: Read): Violation[] {
  const seen = new Map<string, OptionPath>();
  const wrong: Violation[] = [];
  for (const path of opened(read))
    for (const listen of read[path] ?? []) {
      const text = listenText(listen);
      const before = seen.get(text);
      if (before !== undefined && !text.endsWith(":0"))
        wrong.push({ path, found: `${text}, which ${before} has too`, expected: "another address or port" });
      seen.set(text, path);
    }
  return wrong;
}

function devStaysLocal(read: Read): Violation[] {
  return opened(read).flatMap((path) =>
    (read[path] ?? [])
      .filter((listen) => !isLoopback(listen))
      .map((listen) => ({
        path,
        found: listenText(listen),
        expected: "a loopback address: --dev is for this machine alone",
      })),
  );
}

const named = [
  "tls.cert",
  "tls.key",
  "tls.acme.eab_mac_key_file",
  "outbound.shaping_file",
  "outbound.smart_host.password_file",
  "webhooks.ca_file",
] as const satisfies OptionPath[];

function files(read: Read, readFile: ReadFile): Violation[] {
  return named.flatMap((path): Violation[] => {
    const file = read[path];
    return typeof file === "string" ? fileFaults(path, file, readFile) : [];
  });
}

/** What is wrong with the file that an option names. */
export function fileFaults(path: (typeof named)[number], file: string, readFile: ReadFile): Violation[] {
  try {
    const text = readFile(file);
    if (text === null)
      return [{ path, found: `${file}, where there is no file`, expected: "the path of a file" }];
    if (text.trim() === "")
      return [{ path, found: `${file}, which is empty`, expected: "a file with content" }];
    if (path === "tls.acme.eab_mac_key_file" && !/^[\w-]+=*$/.test(text.trim()))
      return [{ path, found: `${file} with something else`, expected: "a file with one key in base64url" }];
    return path === "outbound.shaping_file"
      ? shapingFaults(parse(text)).map(({ found, expected }) => ({
          path,
          found: `${found} of ${file}`,
          expected,
        }))
      : [];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return [{ path, found: `${file}, which cannot be read (${why})`, expected: "a file that can be" }];
  }
}
