// The attacks of a security review, repeated against a built product while a client that behaves goes on: what it
// waits, what arrives of its mail, what memory the product takes, and what the attack itself achieved.
// `npm run bench:attacks -- --help`
import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { Attack, Facts, Given } from "./attacks/attack.ts";
import { startChild } from "./attacks/child.ts";
import { goFirst, goLast } from "./attacks/first.ts";
import { judged, sectionOf, type Round, type RowResult } from "./attacks/judge.ts";
import { measureWindow } from "./attacks/measure.ts";
import { attacks } from "./attacks/rows.ts";
import { startStand, type Stand } from "./attacks/stand.ts";
import { takeMachine } from "./group.ts";
import { folder as benchFolder } from "./tools.ts";

const { values: wanted } = parseArgs({
  options: {
    rows: { type: "string" },
    program: { type: "string" },
    seconds: { type: "string", default: "8" },
    rounds: { type: "string", default: "1" },
    help: { type: "boolean", default: false },
  },
});
const help = `npm run bench:attacks -- [--rows a,b] [--program DIR] [--seconds 8] [--rounds 1]
  --rows     some rows only; a name that ends in - stands for all that begin so (http-,content-)
  --program  another checkout with a built bin/svc: what an attack did there
  --seconds  of each window: one before the attack, one under it
  --rounds   each on a product started afresh; the median of their ratios is judged
All of it stays on 127.0.0.0/8. The exit code is 0 whatever the verdicts are.

${attacks.map(({ name, title }) => `  ${name.padEnd(20)} ${title}`).join("\n")}
`;
const warmSeconds = 3;
const program = resolve(wanted.program ?? join(import.meta.dirname, ".."));
const [seconds, rounds] = [Number(wanted.seconds), Number(wanted.rounds)];

if (!(seconds >= 1 && rounds >= 1)) {
  process.stderr.write("--seconds and --rounds are numbers from 1 on\n");
  process.exit(2);
}
if (wanted.help) process.stdout.write(help);
else await main();

async function main(): Promise<void> {
  const rows = chosen(wanted.rows);
  const results: RowResult[] = [];
  const folder = join(import.meta.dirname, "results");
  mkdirSync(folder, { recursive: true });
  await takeMachine(benchFolder);
  if (!goFirst()) process.stdout.write("what else runs here disturbs: no control group of our own\n");
  const began = new Date().toISOString();
  const file = join(folder, `attacks-${began.replace(/[:.]/g, "-")}.json`);
  for (const attack of rows) {
    try {
      const done: Round[] = [];
      for (let i = 0; i < rounds; i++) done.push(await round(attack));
      const result = judged(attack.name, attack.title, done);
      results.push(result);
      process.stdout.write(
        `${sectionOf(result)}load ${loadavg()
          .map((one) => one.toFixed(1))
          .join(" ")}\n\n`,
      );
    } catch (error) {
      process.stdout.write(`== ${attack.name}: could not be measured: ${String(error)}\n\n`);
    }
    writeFileSync(file, `${JSON.stringify({ began, program, seconds, results }, null, 1)}\n`);
  }
  const missed = results.filter(({ verdicts }) => verdicts.some(({ met }) => !met)).map(({ name }) => name);
  process.stdout.write(
    `missed in ${missed.length} of ${rows.length}: ${missed.join(", ") || "none"}\n${file}\n`,
  );
}

function chosen(names: string | undefined): readonly Attack[] {
  if (names === undefined) return attacks;
  return names.split(",").flatMap((name) => {
    const found = attacks.filter(
      (one) => one.name === name || (name.endsWith("-") && one.name.startsWith(name)),
    );
    if (found.length === 0) {
      process.stderr.write(`there is no row ${name}; --help lists them\n`);
      process.exit(2);
    }
    return found;
  });
}

/** A product started afresh, its base, then the same under attack. */
async function round(attack: Attack): Promise<Round> {
  const stand = await started(attack);
  const attacker = await startChild("attacker.ts");
  if (!goLast(attacker.pid)) process.stdout.write("the attacker's own processor time is in the figures\n");
  try {
    const given: Given = (await attack.prepare?.(stand)) ?? {};
    await wait(warmSeconds * 1000);
    const base = await measureWindow(stand, seconds, null);
    await attacker.ask("begin", { name: attack.name, target: stand.target, given });
    const ramp = attack.rampSeconds ? await measureWindow(stand, attack.rampSeconds, attacker.pid) : null;
    const under = await measureWindow(stand, seconds, attacker.pid);
    const gone = stand.gone();
    const facts = await attacker
      .ask<Facts>("end")
      .catch((error: unknown) => ({ "attacker failed": String(error) }));
    const after = attack.after
      ? await attack.after(stand, given).catch((error: unknown) => ({ after: String(error) }))
      : {};
    const rising: Facts = ramp
      ? {
          "until full strength: REST p99 ms": Math.round(ramp.restP99),
          "until full strength: /healthz max ms": Math.round(ramp.healthMost),
        }
      : {};
    return { base, attack: under, facts: { ...rising, ...facts, ...after }, gone: gone ?? stand.gone() };
  } finally {
    await attacker.stop();
    await stand.stop();
  }
}

/** Ports that were free a moment ago may be taken by another program's connection. */
async function started(attack: Attack): Promise<Stand> {
  for (let tries = 1; ; tries++) {
    try {
      return await startStand(program, attack.config ?? {}, seconds);
    } catch (error) {
      if (tries >= 3) throw error;
      process.stderr.write(`${attack.name}: ${String(error).slice(0, 500)}; once more\n`);
    }
  }
}
