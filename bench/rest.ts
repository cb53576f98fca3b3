// Send requests over HTTPS as a load, and what they cost.
import { once } from "node:events";
import { join } from "node:path";
import { createGroup, type Group } from "./group.ts";
import type { RestResult, RestWork } from "./load/rest.ts";
import { allAnswered, count, figures, watchMemory, type Measured } from "./measure.ts";
import type { Running } from "./parties/party.ts";
import type { RunningProduct } from "./parties/product.ts";
import { ports, type Sink } from "./tools.ts";

const connections = 32;

export async function createKey(running: RunningProduct, options: { test?: boolean } = {}): Promise<string> {
  const made = await running.admin("POST", "/v1/keys", { name: "bench", scope: "send", ...options });
  if (made.status !== 201) throw new Error(`no key was made: ${made.text}`);
  return made.json.key as string;
}

export async function runRest(
  group: Group,
  work: Pick<RestWork, "key" | "messages" | "sizeBytes"> & Partial<RestWork>,
): Promise<RestResult> {
  const whole: RestWork = {
    port: ports.https,
    connections,
    destinations: 1,
    recipients: 1,
    idempotencyKeys: false,
    sendAt: null,
    tracked: null,
    ...work,
  };
  const child = group.spawn(
    process.execPath,
    [join(import.meta.dirname, "load/rest.ts"), JSON.stringify(whole)],
    {
      stdio: ["ignore", "pipe", 2],
    },
  );
  let output = "";
  child.stdout?.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`the sender of requests ended with ${code}`);
  const result = JSON.parse(output) as RestResult;
  if (result.refused > 0)
    throw new Error(`${result.refused} requests were refused, ${result.accepted} accepted`);
  return result;
}

/** With a sink: until it has all mails. Without: until all are accepted; they are to be sent in three hours. */
export async function measureRest(
  given: Running,
  sink: Sink | null,
  work: { messages: number; sizeBytes: number; idempotencyKeys: boolean; tracked?: boolean },
): Promise<Measured> {
  const running = given as RunningProduct;
  const [key, generator] = [await createKey(running), createGroup("generator")];
  if (work.tracked) await running.admin("PATCH", "/v1/domains/example.test", { tracking: { enabled: true } });
  try {
    await sink?.reset();
    const receiver = sink?.group ?? createGroup("nobody");
    const memory = watchMemory(running.group);
    const before = count(running.group, generator, receiver);
    const sendAt = sink ? null : new Date(Date.now() + 3 * 3_600_000).toISOString();
    const result = await runRest(generator, { ...work, key, sendAt });
    const missing = sink ? await allAnswered(sink, work.messages) : false;
    const after = count(running.group, generator, receiver);
    if (!sink) await receiver.end();
    const stats = sink?.stats();
    const measured = figures(before, after, result, work.messages, stats?.answeredNs ?? result.endedNs);
    return {
      ...measured,
      peakBytes: memory.stop(),
      answerP50: result.answerP50,
      answerP99: result.answerP99,
      ...(stats ? { signaturesPerMessage: stats.signatures / stats.messages } : {}),
      fault: missing ? `the sink has ${stats?.messages} of ${work.messages}` : measured.fault,
    };
  } finally {
    await generator.end();
  }
}
