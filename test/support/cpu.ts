// Processor time of this thread, for tests that input of a hostile shape costs no more than its length: what
// else runs on the machine does not count.

/** Milliseconds of processor time that `run` took. */
export function cpuMs(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
