// Fetches the text of an MTA-STS policy (RFC 8461 §3.3): GET over HTTPS from the policy host of the domain, whose
// certificate must be valid; an answer that is not 200 is none, redirects included; at most 64 KB in at most a minute.
// The domain is a customer's choice, and its DNS says where we connect: only to addresses that mail may be sent to.
import { isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { request } from "node:https";
import type { ConnectionOptions, SecureContext } from "node:tls";
import type { Clock } from "../clock.ts";
import { createAllowList, isPublicAddress } from "../dns/networks.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Owner } from "../fairness.ts";

const longestBytes = 64 * 1024;
const timeoutMs = 60_000;
/** Of the policy host; the others are not tried. */
const maxAddresses = 4;

export interface FetchDeps {
  resolver: Pick<Resolver, "a" | "aaaa">;
  /** Loopback and private networks that may be dialled. */
  allowNetworks: string[];
  secureContext: () => SecureContext;
  clock: Clock;
  /** Of the policy host; 443 if not given. */
  port?: number;
}

/** Rejects with why there is no text; `signal` gives up. */
export type FetchPolicy = (domain: string, owner: Owner, signal: AbortSignal) => Promise<string>;

export function createFetch(deps: FetchDeps): FetchPolicy {
  const { resolver, secureContext, clock, port = 443 } = deps;
  const allowed = createAllowList(deps.allowNetworks);
  const mayDial = (address: string): boolean => isPublicAddress(address) || allowed(address);

  const addressesOf = async (host: string, owner: Owner): Promise<string[]> => {
    const answers = await Promise.all([resolver.a(host, owner), resolver.aaaa(host, owner)]);
    const all = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
    if (all.length === 0) throw new Error(`${host} does not resolve`);
    const dialled = all.filter(mayDial).slice(0, maxAddresses);
    if (dialled.length === 0) throw new Error(`${host} has no address that may be dialled: ${all[0]}`);
    return dialled;
  };

  return async (domain, owner, signal) => {
    const host = `mta-sts.${domain}`;
    const lookup = pinned(await addressesOf(host, owner));
    const tls: ConnectionOptions = {
      servername: host,
      secureContext: secureContext(),
      rejectUnauthorized: true,
    };
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const asked = request({
      host,
      port,
      path: "/.well-known/mta-sts.txt",
      lookup,
      ...tls,
      agent: false,
      headers: { accept: "text/plain" },
      signal,
    });
    const deadline = clock.after(timeoutMs, () =>
      asked.destroy(new Error(`no whole answer within ${timeoutMs / 1000} s`)),
    );
    asked.on("error", reject);
    asked.on("response", (answer) => {
      const { statusCode, headers } = answer;
      const type = headers["content-type"] ?? "text/plain";
      if (statusCode !== 200) return asked.destroy(new Error(`the answer was ${statusCode}`));
      if (!/^text\/plain\b/i.test(type)) return asked.destroy(new Error("the answer is not text/plain"));
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on("error", reject);
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > longestBytes) asked.destroy(new Error(`the answer is longer than ${longestBytes} bytes`));
        else chunks.push(chunk);
      });
      answer.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
      answer.on("close", () => reject(new Error("the answer ended early")));
    });
    asked.end();
    try {
      return await promise;
    } finally {
      deadline.cancel();
      asked.destroy();
    }
  };
}

/** Dials these and nothing else, whatever the name resolves to by then. */
function pinned(addresses: string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  return (_name, options, callback) => {
    if (options.all) return callback(null, found);
    callback(null, found[0]?.address ?? "", found[0]?.family ?? 0);
  };
}
