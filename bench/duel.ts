// `npm run bench:duel -- --against DIR`: this build beside another one (a checkout with bin/svc built), both running
// at once, loaded by turns in short segments. What a neighbour on the machine takes for minutes hits both, so that a
// difference of a few per cent shows where two runs of `npm run bench` differ by ten. Needs root: each side has a
// network namespace, and with it the ports of tools.ts, of its own.
//   --against DIR   the other checkout
//   --row NAME      a row of rows.ts; signed-4k
//   --contender A   one of its svc; the first
//   --segments N    of each side; 24
//   --messages N    of a segment; 2000
//   --warm-up N     messages of each side before the first segment; 30000, after which V8 has optimized nearly all that it will
import { spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { median } from "./table.ts";
import { folder } from "./tools.ts";

const { values: flags } = parseArgs({
  options: {
    against: { type: "string" },
    row: { type: "string", default: "signed-4k" },
    contender: { type: "string", default: "" },
    segments: { type: "string", default: "24" },
    messages: { type: "string", default: "2000" },
    "warm-up": { type: "string", default: "30000" },
  },
});
const [segments, messages, warmUp] = [flags.segments, flags.messages, flags["warm-up"]].map(Number) as [
  number,
  number,
  number,
];
const here = resolve(import.meta.dirname, "..");
if (
  flags.against === undefined ||
  !existsSync(join(flags.against, "bin/svc")) ||
  !(segments >= 2 && messages >= 1 && warmUp >= 0)
) {
  process.stderr.write(
    "--against names a checkout with bin/svc built; --segments is 2 or more, --messages 1 or more, --warm-up 0 or more\n",
  );
  process.exit(2);
}

interface Side {
  /** CPU microseconds a message of one segment. */
  run(messages: number): Promise<number>;
  end(): void;
}

const [other, own] = [await start("other", resolve(flags.against)), await start("own", here)];
try {
  for (let sent = 0; sent < warmUp; sent += 5000)
    for (const side of [other, own]) await side.run(Math.min(5000, warmUp - sent));
  const measured: { other: number; own: number }[] = [];
  for (let i = 0; i < segments; i++) {
    const first = i % 2 === 0 ? await other.run(messages) : null;
    const ours = await own.run(messages);
    measured.push({ other: first ?? (await other.run(messages)), own: ours });
  }
  report(measured);
} finally {
  other.end();
  own.end();
}

async function start(name: string, program: string): Promise<Side> {
  const directory = `${folder}-duel-${name}`;
  mkdirSync(directory, { recursive: true });
  const side = `ip link set lo up && exec ${process.execPath} ${join(import.meta.dirname, "duel-side.ts")}`;
  const child = spawn("unshare", ["--net", "sh", "-c", side], {
    env: {
      ...process.env,
      SVC_BENCH_DIR: directory,
      DUEL_ROW: flags.row,
      DUEL_CONTENDER: flags.contender,
      DUEL_PROGRAM: program,
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<string> => {
    const { done, value } = await lines.next();
    if (done) throw new Error(`${program}: its side of the duel ended`);
    return value;
  };
  await read();
  return {
    async run(count) {
      child.stdin.write(`${Math.round(count)}\n`);
      return Number(await read());
    },
    end: () => void child.stdin.end(),
  };
}

function report(measured: { other: number; own: number }[]): void {
  const ratios = measured.map((one) => one.own / one.other);
  const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length;
  const variance = ratios.reduce((sum, ratio) => sum + (ratio - mean) ** 2, 0) / (ratios.length - 1);
  const micros = (of: (one: { other: number; own: number }) => number): string =>
    median(measured.map(of)).toFixed(0);
  process.stdout.write(
    `${[flags.row, flags.contender].filter(Boolean).join(", ")}: CPU µs a message ${micros((one) => one.other)} there, ${micros((one) => one.own)} here; ` +
      `here / there ${mean.toFixed(3)} ± ${Math.sqrt(variance / ratios.length).toFixed(3)}, median ${median(ratios).toFixed(3)} (${ratios.length} segments of ${messages})\n`,
  );
}
