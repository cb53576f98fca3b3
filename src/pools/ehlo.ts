// Which EHLO name an account's key may set for an address: one that the DNS resolves to that address, or the host's own.
// Any other would let the account present its mail as another server's (RFC 5321 §4.1.1.1: the client's own name). The
// operator may set any name, since records are often published after the address is configured.
import type { DnsAnswer, Resolver } from "../dns/resolver.ts";
import { Refusal } from "../errors.ts";
import { recordsOf, sameAddress } from "./ptr.ts";

/** Throws Refusal: validation_failed, or upstream_error if the DNS look-up fails. */
export async function checkEhloName(
  { resolver, hostname }: { resolver: Pick<Resolver, "a" | "aaaa">; hostname: string },
  name: string,
  address: string,
): Promise<void> {
  const wanted = name.toLowerCase();
  if (wanted === hostname.toLowerCase()) return;
  const isV6 = address.includes(":");
  const answer: DnsAnswer<string> = await (isV6 ? resolver.aaaa(wanted) : resolver.a(wanted));
  if (answer.kind === "failed")
    throw new Refusal(
      "upstream_error",
      `The DNS lookup of ${wanted} failed (${answer.why}); nothing was changed, try again.`,
    );
  if (recordsOf(answer).some((record) => sameAddress(record, address))) return;
  const issue = `has no ${isV6 ? "AAAA" : "A"} record with ${address}; publish one, or leave hostname out to use ${hostname}`;
  throw new Refusal("validation_failed", `hostname: ${wanted} ${issue}`, {
    field: "hostname",
    errors: [{ field: "hostname", code: "validation_failed", issue: `${wanted} ${issue}` }],
  });
}
