// Fetches the text of an MTA-STS policy (RFC 8461 §3.3) from the policy host of the domain. An answer that is not 200 is
// none, redirects included; so is one of another type than text.
import type { Owner } from "../fairness.ts";
import type { Https } from "../https.ts";

/** Rejects with why there is no text; `signal` gives up. */
export type FetchPolicy = (domain: string, owner: Owner, signal: AbortSignal) => Promise<string>;

/** `port`: of the policy host, 443 if not given. */
export function createFetch(https: Https, port = 443): FetchPolicy {
  return async (domain, owner, signal) => {
    const { status, headers, body } = await https({
      method: "GET",
      host: `mta-sts.${domain}`,
      port,
      path: "/.well-known/mta-sts.txt",
      headers: { accept: "text/plain" },
      owner,
      signal,
    });
    if (status !== 200) throw new Error(`the answer was ${status}`);
    if (!/^text\/plain\b/i.test(headers["content-type"] ?? "text/plain"))
      throw new Error("the answer is not text/plain");
    return body.toString("utf8");
  };
}
