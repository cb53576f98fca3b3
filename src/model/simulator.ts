// The domain of the simulator's recipients, whose mail never leaves the machine. What each of them plays:
// sandbox/simulator.ts.

export const simulatorDomain = "simulator.svc";
