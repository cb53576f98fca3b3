// One attack in a process of its own, so that neither its event loop nor its memory is the client's or the product's.
import type { Facts, Given } from "./attack.ts";
import { answering } from "./child.ts";
import { attacks } from "./rows.ts";
import type { Target } from "./stand.ts";

const ended = new AbortController();
let running: Promise<Facts> | null = null;

answering({
  begin({ name, target, given }: { name: string; target: Target; given: Given }) {
    const attack = attacks.find((one) => one.name === name);
    if (!attack) throw new Error(`no attack ${name}`);
    running = attack.run(target, given, ended.signal);
    running.catch(() => undefined);
    setTimeout(() => process.exit(1), (target.seconds + 90) * 1000).unref();
  },
  async end(): Promise<Facts> {
    ended.abort();
    return (await running) ?? {};
  },
});
