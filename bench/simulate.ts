// A day on paper: ten million messages with their receivers' caps and deferrals, played on a simulated clock against the
// queue's own schedule, limits and throttles. What would the backlog be with so many addresses, and when is it gone?
// `npm run bench:simulate -- --help`
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { z } from "zod";
import { hourMs } from "../src/clock.ts";
import { optionNotes, options } from "../src/config/options.ts";
import { playDay } from "./simulate/day.ts";
import { svgOf } from "./simulate/plot.ts";
import { linesOf, tableOf, warmupTableOf, type Played } from "./simulate/table.ts";

const { values: wanted } = parseArgs({
  options: {
    messages: { type: "string", default: "10000000" },
    addresses: { type: "string", default: "1,2,4,8" },
    seed: { type: "string", default: "1" },
    caps: { type: "string", default: "1" },
    "shaping-file": { type: "string" },
    hours: { type: "string", default: "96" },
    warmup: { type: "string", default: "" },
    help: { type: "boolean", default: false },
  },
});
const help = `npm run bench:simulate -- [--messages 10000000] [--addresses 1,2,4,8] [--seed 1]
  --messages      accepted in the day; with a tenth of them and one address, each address has as much to do as one of ten
  --addresses     a day each
  --seed          of all chance: the same one plays the same day
  --caps          times the connections and rates that receivers are assumed to stand, such as 0.5
  --shaping-file  JSON as outbound.shaping_file reads it, in place of the built-in limits
  --warmup        the addresses warm up, and this is the day of it, such as 1,8,15; a day each, as one table
  --hours         the simulation ends there, from midnight of the day; what is not done then is left
Tables and plots go to standard output, an SVG and JSON to bench/results/.
`;

if (wanted.help) process.stdout.write(help);
else main();

function main(): void {
  const file = wanted["shaping-file"];
  const base = {
    messages: numberOf("messages"),
    seed: numberOf("seed"),
    caps: numberOf("caps"),
    endMs: numberOf("hours") * hourMs,
    schedule: {
      retryMs: standard(options["outbound.retry"], []),
      maxAgeMs: standard(options["outbound.max_age"], 0),
    },
    shapingFile: file === undefined ? null : (JSON.parse(readFileSync(file, "utf8")) as unknown),
  };
  const counts = wanted.addresses.split(",").map(Number);
  if (!counts.every((count) => Number.isInteger(count) && count >= 1 && count <= 200))
    throw fault("addresses");
  const warmupDays = wanted.warmup === "" ? [] : wanted.warmup.split(",").map(Number);
  if (!warmupDays.every((day) => Number.isInteger(day) && day >= 1 && day <= 31)) throw fault("warmup");
  if (warmupDays.length > 0) {
    const played = counts.flatMap((addresses) =>
      warmupDays.map((warmupDay) => ({
        addresses,
        warmupDay,
        day: playDay({ ...base, addresses, warmupDay }),
      })),
    );
    return void process.stdout.write(`${warmupTableOf(played)}\n`);
  }
  const all: Played[] = [];
  for (const addresses of counts) {
    const began = process.cpuUsage();
    const played = { addresses, warmupDay: null, day: playDay({ ...base, addresses, warmupDay: null }) };
    const { user, system } = process.cpuUsage(began);
    all.push(played);
    process.stdout.write(`${tableOf(played)}\n\n${linesOf(played)}\n\n`);
    const memory = Math.round(process.resourceUsage().maxRSS / 1024);
    process.stdout.write(
      `(${Math.round((user + system) / 1e6)} s of processor time, ${memory} MB at most)\n\n`,
    );
  }
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  const name = join(folder, `simulate-${new Date().toISOString().replace(/[:.]/g, "-")}`);
  writeFileSync(`${name}.svg`, svgOf(all));
  writeFileSync(`${name}.json`, JSON.stringify({ ...base, days: all }));
  process.stdout.write(`${name}.svg, .json\n`);
}

function numberOf(name: "messages" | "seed" | "caps" | "hours"): number {
  const value = Number(wanted[name]);
  if (!(value > 0)) throw fault(name);
  return value;
}

const fault = (name: string): Error => new Error(`--${name} is a number above 0, see --help`);

/** An option's default, as the product reads it. */
function standard<T>(option: z.ZodType<T | undefined>, none: T): T {
  const { standard: written } = optionNotes.get(option) ?? {};
  return option.parse(written) ?? none;
}
