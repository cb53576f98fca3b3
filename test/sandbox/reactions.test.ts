import { afterAll, beforeAll, expect, test } from "vitest";
import { createRecorder } from "../../src/events/record.ts";
import { silentLog } from "../../src/log.ts";
import { createReactions } from "../../src/sandbox/reactions.ts";
import { reactionEvents, reactionNames } from "../../src/sandbox/simulator.ts";
import { mint } from "../store/fixtures.ts";
import { trackingWorld, type TrackingWorld } from "../tracking/world.ts";

let world: TrackingWorld;
let react: ReturnType<typeof createReactions>;
beforeAll(async () => {
  world = await trackingWorld();
  const { store, clock, visits, unsubscribes } = world;
  const recorder = createRecorder({ clock, mint });
  react = createReactions({ store, recorder, visits, unsubscribes, clock, log: silentLog });
});
afterAll(async () => {
  await world.visits.stop();
  await world.store.close();
});

test.each(reactionNames)("%s@ plays its reaction every time, and is never suppressed", async (name) => {
  for (const isTest of [true, true, false]) {
    const { job } = await world.delivered(`${name}@simulator.svc`, { test: isTest });
    react(job);
    await expect.poll(() => world.eventsOf(job.message.id)).toHaveLength(1);
    const [event] = await world.eventsOf(job.message.id);
    expect(event?.type).toBe(reactionEvents[name]);
    expect(event?.data["test"]).toBe(isTest ? true : undefined);
    expect(await world.store.suppression(world.account, job.canonical, world.clock.now())).toBeNull();
  }
});

test("other recipients, of the simulator and of the world, do nothing", async () => {
  for (const to of ["delivered@simulator.svc", "open@shop.test"]) {
    const { job } = await world.delivered(to, { test: true });
    react(job);
    await new Promise((resolve) => setImmediate(resolve));
    expect(await world.eventsOf(job.message.id)).toEqual([]);
  }
});
