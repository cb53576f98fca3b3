// One HTTPS request: to a host that a recipient domain names (an MTA-STS policy, a TLS report), or to an ACME server. Only
// public addresses and `allowNetworks` are dialled, as they were looked up: a recipient domain is a customer's choice, and
// its DNS says where we connect. The certificate must be valid for the host; redirects are not followed; the answer is at
// most 64 KB, and the whole takes at most a minute. Answers that announce another one (1xx) are few; a switch to another
// protocol is none. Webhooks have a client of their own (webhooks/post.ts).
import { isIP } from "node:net";
import type { LookupFunction } from "node:net";
import { request } from "node:https";
import type { IncomingHttpHeaders } from "node:http";
import type { ConnectionOptions, SecureContext } from "node:tls";
import type { Clock } from "./clock.ts";
import { createAllowList, isPublicAddress } from "./dns/networks.ts";
import type { Resolver } from "./dns/resolver.ts";
import type { Owner } from "./fairness.ts";

const longestBytes = 64 * 1024;
const timeoutMs = 60_000;
/** Of the host; the others are not tried. */
const maxAddresses = 4;
/** Answers of 1xx before the answer: a server may send any number, and each costs the loop a moment. */
const maxInformational = 10;

export interface HttpsDeps {
  resolver: Pick<Resolver, "a" | "aaaa">;
  /** Loopback and private networks that may be dialled. */
  allowNetworks: string[];
  secureContext: () => SecureContext;
  clock: Clock;
}

export interface HttpsRequest {
  method: "GET" | "HEAD" | "POST";
  /** A name. */
  host: string;
  port: number;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  body?: Buffer;
  /** Whose look-ups it needs. */
  owner: Owner;
  /** Gives up. */
  signal: AbortSignal;
}

export interface HttpsAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Rejects with why there is no whole answer. */
export type Https = (asked: HttpsRequest) => Promise<HttpsAnswer>;

export function createHttps({ resolver, allowNetworks, secureContext, clock }: HttpsDeps): Https {
  const allowed = createAllowList(allowNetworks);
  const mayDial = (address: string): boolean => isPublicAddress(address) || allowed(address);

  const addressesOf = async (host: string, owner: Owner): Promise<string[]> => {
    if (isIP(host) !== 0) throw new Error(`${host} is an address, and no name`);
    const answers = await Promise.all([resolver.a(host, owner), resolver.aaaa(host, owner)]);
    const all = answers.flatMap((answer) => (answer.kind === "found" ? answer.records : []));
    if (all.length === 0) throw new Error(`${host} does not resolve`);
    const dialled = all.filter(mayDial).slice(0, maxAddresses);
    if (dialled.length === 0) throw new Error(`${host} has no address that may be dialled: ${all[0]}`);
    return dialled;
  };

  return async ({ host, owner, body, ...asked }) => {
    const lookup = pinned(await addressesOf(host, owner));
    const tls: ConnectionOptions = {
      servername: host,
      secureContext: secureContext(),
      rejectUnauthorized: true,
    };
    const { promise, resolve, reject } = Promise.withResolvers<HttpsAnswer>();
    const sent = request({ ...asked, host, lookup, agent: false, ...tls });
    const giveUp = (why: string): void => {
      const error = new Error(why);
      reject(error); // a request whose socket is gone says nothing of its own
      sent.destroy(error);
    };
    const deadline = clock.after(timeoutMs, () => giveUp(`no whole answer within ${timeoutMs / 1000} s`));
    let informational = 0;
    sent.on("error", reject);
    sent.on("upgrade", (_answer, socket) => {
      socket.destroy();
      giveUp("the answer switches to another protocol");
    });
    sent.on("information", () => {
      if (++informational > maxInformational) giveUp("too many answers of 1xx");
    });
    sent.on("response", (answer) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      answer.on("error", reject);
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > longestBytes) giveUp(`the answer is longer than ${longestBytes} bytes`);
        else chunks.push(chunk);
      });
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
      answer.on("close", () => reject(new Error("the answer ended early")));
    });
    sent.end(body);
    try {
      return await promise;
    } finally {
      deadline.cancel();
      sent.destroy();
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
