// Where no address warms up: what the pools read of the store, and what the queue asks.
export const noWarmups = { warmupCounts: async () => [], endWarmups: async () => [] };
export const uncapped = {
  warmups: { capAt: () => null, takeBack: () => undefined },
  capWaitUntil: () => null,
};
