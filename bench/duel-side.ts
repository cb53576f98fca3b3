// One side of duel.ts, in a network namespace of its own: starts the program, says "ready", and measures as many
// messages as each line of its input asks for.
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endAll, takeMachine } from "./group.ts";
import { rows } from "./rows.ts";
import { compile, folder, startSink } from "./tools.ts";

const { DUEL_ROW = "", DUEL_CONTENDER = "", DUEL_PROGRAM = "" } = process.env;
const row = rows.find(({ name }) => name === DUEL_ROW);
const contender = row?.contenders.find(({ name }) => DUEL_CONTENDER === "" || name === DUEL_CONTENDER);
if (!contender) throw new Error(`no such row or contender: ${DUEL_ROW} ${DUEL_CONTENDER}`);

await takeMachine(folder);
const tools = compile();
const sink = await startSink(tools, contender.sink);
try {
  const setting = { ...contender.setting, command: [join(DUEL_PROGRAM, "bin/svc")] as [string] };
  const running = await contender.party.start(setting, tools);
  process.stdout.write("ready\n");
  for await (const line of createInterface({ input: process.stdin })) {
    const { cpuMicros } = await contender.measure({ running, sink, tools }, Number(line));
    process.stdout.write(`${cpuMicros}\n`);
  }
  await running.stop();
} finally {
  await endAll();
}
