// Checks the addresses of all pools: whether this machine has each (bind.ts), and less often its PTR record (ptr.ts). What
// is found is saved where it is not as it was.
import { hourMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { Log } from "../log.ts";
import type { AddressLook, PoolAddress } from "../model/ip-pool.ts";
import type { Store } from "../store/store.ts";
import { lookUpPtr } from "./ptr.ts";

export interface AddressChecksDeps {
  store: Pick<Store, "saveLooks">;
  resolver: Pick<Resolver, "ptr" | "a" | "aaaa">;
  hostname: string;
  clock: Clock;
  log: Log;
  canBind(address: string): Promise<boolean>;
  addresses(): PoolAddress[];
  /** What was found is in the store. */
  onSaved(): Promise<void>;
  onChecked(): void;
}

type Seen = Map<string, PoolAddress>;

/** How long a PTR result is kept; less while it is wrong, since the operator may be correcting it. */
const ptrKeptMs = hourMs;
const badPtrKeptMs = 300_000;
/** PTR look-ups of one round; the rest waits for the next. */
const ptrLooksMost = 50;
const ptrLooksAtOnce = 10;

export function createAddressChecks(deps: AddressChecksDeps) {
  const { store, clock, log } = deps;
  /** When the PTR record of an address and its name was looked up, on the monotonic clock. */
  const askedAt = new Map<string, number>();
  let looking: Promise<void> | null = null;
  let again = false;

  /** What is known of each address, and what this machine says of it now. */
  const checkBinds = async (): Promise<{ seen: Seen; looks: Map<string, AddressLook> }> => {
    const seen: Seen = new Map(deps.addresses().map((address) => [address.address, address]));
    const looks = new Map<string, AddressLook>();
    for (const { address, ptr, ptrOk } of seen.values())
      looks.set(address, { address, bindable: await deps.canBind(address), ptr, ptrOk });
    await save(looks, seen);
    return { seen, looks };
  };

  const lookOnce = async (): Promise<void> => {
    const { seen, looks } = await checkBinds();
    const asked = new Set([...seen.values()].map(askedKey));
    for (const key of askedAt.keys()) if (!asked.has(key)) askedAt.delete(key);
    const due = [...seen.values()].filter(isPtrDue).slice(0, ptrLooksMost);
    for (let from = 0; from < due.length; from += ptrLooksAtOnce)
      await Promise.all(due.slice(from, from + ptrLooksAtOnce).map((address) => lookAtPtr(address, looks)));
    await save(looks, seen);
    deps.onChecked();
  };

  const ehloName = ({ hostname }: PoolAddress): string => hostname ?? deps.hostname;
  const askedKey = (address: PoolAddress): string => `${address.address} ${ehloName(address)}`;

  const isPtrDue = (address: PoolAddress): boolean => {
    const asked = askedAt.get(askedKey(address));
    const keptMs = address.ptrOk === true ? ptrKeptMs : badPtrKeptMs;
    return asked === undefined || clock.monotonic() - asked >= keptMs;
  };

  const lookAtPtr = async (of: PoolAddress, looks: Map<string, AddressLook>): Promise<void> => {
    const { address } = of;
    askedAt.set(askedKey(of), clock.monotonic());
    const found = await lookUpPtr(deps.resolver, address, ehloName(of));
    const look = looks.get(address);
    // Where only the name's address could not be looked up, what was known of it stands.
    if (found && look) looks.set(address, { ...look, ptr: found.ptr, ptrOk: found.ptrOk ?? look.ptrOk });
  };

  /** Writes what is not as it was; `seen` is kept up, so that nothing is written twice. */
  const save = async (looks: Map<string, AddressLook>, seen: Seen): Promise<void> => {
    const changed = [...looks.values()].filter((look) => {
      const was = seen.get(look.address);
      return was?.bindable !== look.bindable || was.ptr !== look.ptr || was.ptrOk !== look.ptrOk;
    });
    if (changed.length === 0) return;
    await store.saveLooks(changed, clock.now());
    for (const look of changed) {
      const was = seen.get(look.address);
      if (was) seen.set(look.address, { ...was, ...look });
    }
    await deps.onSaved();
  };

  const look = (): Promise<void> => {
    if (looking) {
      again = true;
      return looking;
    }
    looking = (async () => {
      do {
        again = false;
        await lookOnce();
      } while (again);
    })().finally(() => (looking = null));
    return looking;
  };

  const lookSoon = (): void => {
    look().catch((error: unknown) => log.error({ err: error }, "checking the pools' addresses failed"));
  };

  return {
    /** At the start: whether this machine has the addresses, and no look-up. */
    checkBinds,
    /** Checks every address. A check requested during another one runs after it. */
    look,
    /** The same in the background; a failure is logged. */
    lookSoon,
    /** When no check runs any more. */
    settled: async () => looking?.catch(() => undefined), // a failure is reported to the caller that asked
  };
}
