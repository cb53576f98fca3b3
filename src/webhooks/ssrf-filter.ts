// Where a webhook may go: https to the public internet, and to what the operator allows (`webhooks.allow_networks`).
// An endpoint's URL is chosen by a customer and dialled by us, from inside the operator's network: without this
// it would be a way into that network (SSRF). The text is judged at configuration, so that mistakes are reported early; what
// protects is the judgement of the address that is really dialled, at each connection, because names change what they
// point at. Literal hosts never reach `lookup`, so `literalRefusal` is asked before each request.
import { isIP } from "node:net";
import type { LookupFunction } from "node:net";
import type { Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";

const longestUrl = 2048;

/** Ports of other protocols, which the Fetch standard blocks ("port blocking"); 0 is not a port. */
const badPorts = new Set(
  (
    "0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 " +
    "143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 " +
    "2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
  ).split(" "),
);

export interface SsrfFilter {
  /** Throws Refusal `validation_failed` (field `url`) where the URL may not be an endpoint. A name that does not resolve passes. */
  check(text: string): Promise<void>;
  /** Why the URL's host, where it is an address, may not be dialled; null where it may or is a name. */
  literalRefusal(url: URL): string | null;
  /** For net.connect: every address of the name, or an error where one of them may not be dialled. */
  lookup: LookupFunction;
}

/** `mayDial` decides on one literal address in any family. */
export function createSsrfFilter(deps: {
  resolver: Pick<Resolver, "a" | "aaaa">;
  mayDial(address: string): boolean;
}): SsrfFilter {
  const literalRefusal = (url: URL): string | null => {
    const host = bareHost(url);
    return isIP(host) !== 0 && !deps.mayDial(host) ? `${host} is not a public address` : null;
  };
  const judge = (name: string, addresses: string[]): string | null => {
    const refused = addresses.find((address) => !deps.mayDial(address));
    return refused === undefined ? null : `${name} resolves to ${refused}, which is not a public address`;
  };
  return {
    literalRefusal,
    async check(text) {
      const url = readEndpointUrl(text);
      const host = bareHost(url);
      const why =
        isIP(host) === 0 ? judge(host, await addressesOf(deps.resolver, host)) : literalRefusal(url);
      if (why !== null) throw urlRefusal(`must lead to the public internet: ${why}`);
    },
    lookup(hostname, options, callback) {
      const name = hostname.replace(/\.$/, "");
      const answer = async (): Promise<void> => {
        const addresses = await addressesOf(deps.resolver, name);
        const why = addresses.length === 0 ? `${name} does not resolve` : judge(name, addresses);
        if (why !== null) return callback(new Error(why), "", 0);
        const found = addresses.map((address) => ({ address, family: isIP(address) }));
        if (options.all) return callback(null, found);
        callback(null, found[0]?.address ?? "", found[0]?.family ?? 0);
      };
      answer().catch((error: unknown) =>
        callback(error instanceof Error ? error : new Error(String(error)), "", 0),
      );
    },
  };
}

/** The URL of an endpoint, its host in one spelling (WHATWG URL). Throws Refusal where its form is not acceptable. */
export function readEndpointUrl(text: string): URL {
  if (text.length > longestUrl) throw urlRefusal(`must be at most ${longestUrl} characters`);
  if (/[\s\p{C}\\]/u.test(text))
    throw urlRefusal("must not contain spaces, control characters or backslashes");
  if (!/^https:\/\//i.test(text)) throw urlRefusal("must begin with https://");
  if (!URL.canParse(text)) throw urlRefusal("is not a URL");
  const url = new URL(text);
  const authority = /^https:\/\/([^/?#]*)/i.exec(text)?.[1] ?? "";
  if (authority.includes("@")) throw urlRefusal("must not contain a user name or password");
  if (text.includes("#")) throw urlRefusal("must not contain a fragment");
  if (badPorts.has(url.port))
    throw urlRefusal(`must not use port ${url.port}, which belongs to another protocol`);
  if (authority === "" || bareHost(url) === "") throw urlRefusal("must name a host");
  return url;
}

function bareHost(url: URL): string {
  return url.hostname.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, "");
}

/** Both families' addresses; none if the name has none or the look-up failed. */
async function addressesOf(resolver: Pick<Resolver, "a" | "aaaa">, name: string): Promise<string[]> {
  // RFC 6761 §6.3: these names are never asked for in the DNS.
  if (/(^|\.)localhost$/i.test(name)) return ["127.0.0.1"];
  const answers = await Promise.all([resolver.a(name, "webhooks"), resolver.aaaa(name, "webhooks")]);
  return answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
}

function urlRefusal(issue: string): Refusal {
  return new Refusal("validation_failed", `url ${issue}`, {
    field: "url",
    errors: [{ field: "url", code: "validation_failed", issue }],
  });
}
