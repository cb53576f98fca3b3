// The dispatcher's queues by themselves.
import { Pool } from "undici";
import { expect, test } from "vitest";
import { createEndpointQueues } from "../../src/webhooks/endpoint-queues.ts";
import { MemoryStore } from "./memory-store.ts";
import { secret } from "./rig.ts";

test("an attempt whose turn comes after the connections were cut off opens none", () => {
  let opened = 0;
  const queues = createEndpointQueues({
    open(url) {
      opened += 1;
      return new Pool(url.origin);
    },
  });
  const endpoint = new MemoryStore().addEndpoint({ key: 1, url: "https://one.example/", secret });
  const [one, other] = [queues.of(1, 1, 0, 0), queues.of(2, 1, 0, 0)];
  queues.connect(one, endpoint);
  queues.closeAll();
  expect(() => queues.connect(one, endpoint)).toThrow("stops");
  expect(() => queues.connect(other, endpoint)).toThrow("stops");
  expect(opened).toBe(1);
});
