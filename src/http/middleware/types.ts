// What a middleware is given. It throws a Refusal, answers with a Reply, or lets the request pass.
import type { Access } from "../../access/access.ts";
import type { Buckets } from "../../access/buckets.ts";
import type { Networks } from "../../access/networks.ts";
import type { Clock } from "../../clock.ts";
import type { Log } from "../../log.ts";
import type { Maintenance } from "../../maintenance/maintenance.ts";
import type { Store } from "../../store/store.ts";
import type { BodyMemory } from "../body-memory.ts";
import type { Connections } from "../connections.ts";
import type { Exchange } from "../exchange.ts";
import type { InFlight } from "../idempotency.ts";
import type { LargeBodies } from "../large-bodies.ts";
import type { Reply } from "../route.ts";

export interface MiddlewareDeps {
  store: Store;
  access: Access;
  buckets: Buckets;
  bodies: BodyMemory;
  largeBodies: Pick<LargeBodies, "open">;
  connections: Connections;
  inFlight: InFlight;
  clock: Clock;
  log: Log;
  trustedProxies: Networks;
  /** `proxy`: TLS ends at a trusted proxy, which must say so; `local`: no TLS at all, from this machine only. */
  transport: "tls" | "proxy" | "local";
  draining(): boolean;
  maintenance: Pick<Maintenance, "refusal">;
}

export type Middleware = (x: Exchange, deps: MiddlewareDeps) => void | Reply | Promise<void | Reply>;
