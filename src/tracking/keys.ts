// The keys that sign the tokens of tracked mail. The newest signs; older ones are kept for ever, since links in mail that was
// delivered must go on working. One is made at the first start, and another when the newest is a year old. No interface
// shows them.
import { dayMs, type Clock } from "../clock.ts";
import { createMac, type Mac } from "../mail/mac.ts";
import type { HasJobs } from "../service.ts";
import type { TrackingKey } from "../model/tracking.ts";
import type { Store } from "../store/store.ts";

export interface SigningKey {
  number: number;
  mac: Mac;
}

export interface TrackingKeys extends HasJobs {
  /** The one that signs. */
  newest(): SigningKey;
  find(number: number): SigningKey | undefined;
  /** Makes a new key, which signs from now on. Resolves to its number; null: there can be no more. */
  rotate(): Promise<number | null>;
}

type Deps = { store: Pick<Store, "trackingKeys" | "addTrackingKey">; clock: Clock };

const rotatedAfterMs = 365 * dayMs;

export async function openTrackingKeys({ store, clock }: Deps): Promise<TrackingKeys> {
  const keys = new Map<number, SigningKey>();
  let newest: (SigningKey & { createdAt: number }) | null = null;
  const add = ({ number, secret, createdAt }: TrackingKey): SigningKey & { createdAt: number } => {
    const key = { number, mac: createMac(secret), createdAt };
    keys.set(number, key);
    return (newest = key);
  };
  const rotate = async (): Promise<number | null> => {
    const made = await store.addTrackingKey(clock.now());
    return made === null ? null : add(made).number;
  };
  for (const key of await store.trackingKeys()) add(key);
  if (newest === null) await rotate();

  const current = (): SigningKey & { createdAt: number } => {
    if (newest === null) throw new Error("tracking has no key");
    return newest;
  };
  return {
    newest: current,
    find: (number) => keys.get(number),
    rotate,
    jobs: [
      {
        name: "rotate-tracking-keys",
        cron: "17 4 * * *",
        run: async () => {
          if (clock.now() - current().createdAt > rotatedAfterMs) await rotate();
        },
      },
    ],
  };
}
