// The problem of a pool and of which of its addresses, with the text for the operator's notice and `svc status`. Pure;
// pools.ts decides when it is reported.
import { isIP } from "node:net";
import { defaultPool, type Pool } from "../model/ip-pool.ts";
import { isUsable, lacksReverseName, sourcesOf } from "./sources.ts";

export interface PoolProblem {
  accountKey: number;
  pool: string;
  /** Mail that waits: all of the pool, or that for hosts of one family alone; null: it leaves from the other addresses. */
  waits: "all" | "IPv4" | "IPv6" | null;
  /** Addresses that cannot be used, or not before the others; empty where the pool has none at all. */
  addresses: AddressFault[];
}

export type AddressFault =
  | { address: string; fault: "unbindable" | "paused" }
  /** `ehloName`: what its PTR record should say. `used`: all the same, since the pool has no better one. */
  | { address: string; fault: "reverse_name"; ehloName: string; used: boolean };

/** Of addresses named in a subject; the text names all. */
const namedMost = 3;

/**
 * null: no problem. An address that the operator paused is not one while others of its family are usable. `hostname`: what is
 * said in EHLO from addresses without a name of their own.
 */
export function problemOf(pool: Pool, hostname: string): PoolProblem | null {
  const { accountKey, name } = pool;
  if (pool.addresses.length === 0)
    return name === defaultPool ? null : { accountKey, pool: name, waits: "all", addresses: [] };
  const { families, usable } = sourcesOf(pool);
  const missing = families.filter((family) => usable(family).length === 0);
  const [only] = missing;
  const waits =
    only === undefined ? null : missing.length === families.length ? "all" : (`IPv${only}` as const);
  const concerned = (address: string): boolean =>
    waits === "all" || (waits !== null && waits === `IPv${isIP(address)}`);
  const unusable = pool.addresses
    .filter((one) => !isUsable(one) && (concerned(one.address) || (waits === null && !one.paused)))
    .map(({ address, paused }): AddressFault => ({ address, fault: paused ? "paused" : "unbindable" }));
  const used = usable(null).map(({ address }) => address);
  const unnamed = pool.addresses
    .filter((one) => waits === null && isUsable(one) && lacksReverseName(one))
    .map(({ address, hostname: own }): AddressFault => {
      return { address, fault: "reverse_name", ehloName: own ?? hostname, used: used.includes(address) };
    });
  const addresses = [...unusable, ...unnamed];
  return addresses.length === 0 ? null : { accountKey, pool: name, waits, addresses };
}

/** One line; it names the addresses. */
export function subjectOf({ pool, waits, addresses }: PoolProblem): string {
  if (addresses.length === 0) return `the pool ${pool} has no address`;
  const named = addresses.slice(0, namedMost).map(({ address, fault }) => `${address} ${faultWords[fault]}`);
  const others = addresses.length - named.length;
  if (others > 0) named.push(`${others} more`);
  const kind = waits === null || waits === "all" ? "" : `${waits} `;
  return waits === null
    ? `${named.join(", ")} (pool ${pool})`
    : `no ${kind}address of the pool ${pool} can be used: ${named.join(", ")}`;
}

const faultWords = {
  unbindable: "is not an address of this machine",
  paused: "is paused",
  reverse_name: "has no valid reverse name",
};

/** What becomes of the pool's mail. */
export function effectOf({ pool, waits, addresses }: PoolProblem): string {
  if (waits === null)
    return addresses.some((one) => one.fault === "reverse_name" && one.used)
      ? `Mail of the pool ${pool} is sent from there all the same, since it has no better address; receivers may refuse it.`
      : `Mail of the pool ${pool} is sent from its other addresses.`;
  const whose = waits === "all" ? "" : ` for hosts that have no other than ${waits} addresses`;
  return addresses.length === 0
    ? `Mail that names the pool ${pool} waits for its first address.`
    : `Mail of the pool ${pool}${whose} waits, because it may leave only from the pool's addresses. It is sent automatically within a minute after the problem is fixed.`;
}

/** What to do, a line an address. `account`: whose pool it is. */
export function adviceOf({ pool, addresses }: PoolProblem, account: string): string[] {
  const of = account === "default" ? "svc" : `svc --account ${account}`;
  if (addresses.length === 0) return [`add an address: ${of} ips add ADDRESS --pool ${pool}`];
  return addresses.map((one) => {
    const { address } = one;
    switch (one.fault) {
      case "paused":
        return `resume it: ${of} ips resume ${address}`;
      case "unbindable":
        return `configure ${address} on this machine, or remove it from the pool: ${of} ips remove ${address}`;
      case "reverse_name":
        return `publish a PTR record of ${address} with ${one.ehloName} and an AAAA record of ${one.ehloName} with ${address}; the DNS is asked every five minutes`;
    }
  });
}
