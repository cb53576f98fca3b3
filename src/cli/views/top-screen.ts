// The screen of `svc top`, as lines: made of an answer of GET /v1/activity, of a view and of the terminal's size, and of
// nothing else. No line is wider than the terminal, and no more come than it has room for.
import type { Glyphs } from "../glyphs.ts";
import { sparkline } from "../glyphs.ts";
import { rowsOf } from "../lists.ts";
import type { Row } from "../output.ts";
import { cell, fitted, widthOf } from "../text.ts";

export const views = ["overview", "providers", "addresses", "webhooks"] as const;
export type View = (typeof views)[number];

export interface ScreenState {
  /** The last answer. */
  activity: Row;
  view: View;
  paused: boolean;
  help: boolean;
  /** Why the daemon does not answer; null: it does. */
  fault: string | null;
}

export interface Size {
  columns: number;
  rows: number;
}

/** `tone`: how a terminal with colours shows it. */
export interface Line {
  text: string;
  tone?: "bold" | "dim" | "warning";
}

export function screenOf(state: ScreenState, size: Size, glyphs: Glyphs): Line[] {
  const columns = Math.max(1, size.columns);
  const room = Math.max(0, size.rows - headRows - 1);
  const body = state.help ? help : bodyOf(state, columns, room, glyphs);
  const lines = [...headOf(state, columns), ...body.slice(0, room)];
  const last = Math.max(0, size.rows - 1);
  const whole = [
    ...lines.slice(0, last),
    ...Array.from({ length: Math.max(0, last - lines.length) }, (): Line => ({ text: "" })),
    { text: "q quit   1-4 tab view   p pause   ? help", tone: "dim" as const },
  ];
  return whole
    .slice(0, Math.max(1, size.rows))
    .map((line) => ({ ...line, text: cutTo(line.text, columns, glyphs) }));
}

const headRows = 3;

function headOf({ activity, view, paused, fault }: ScreenState, columns: number): Line[] {
  const state = fault ?? (paused ? "paused" : `up ${spanText(ageMs(activity, "started_at"))}`);
  const left = `svc top  ${state}`;
  const time = cell(activity["at"]).slice(11);
  const gap = Math.max(2, columns - widthOf(left) - widthOf(time));
  const tabs = views.map((name, index) =>
    name === view ? `[${index + 1} ${name}]` : ` ${index + 1} ${name} `,
  );
  return [
    { text: `${left}${" ".repeat(gap)}${time}`, tone: fault === null && !paused ? "bold" : "warning" },
    { text: tabs.join(" ") },
    { text: "" },
  ];
}

function bodyOf({ activity, view }: ScreenState, columns: number, room: number, glyphs: Glyphs): Line[] {
  switch (view) {
    case "overview":
      return overview(activity, columns, room, glyphs);
    case "providers":
      return mailTable("provider", rowsOf({ data: activity["providers"] }), "provider", columns, glyphs);
    case "addresses":
      return mailTable("address", rowsOf({ data: activity["ips"] }), "ip_address", columns, glyphs);
    case "webhooks":
      return webhookTable(rowsOf({ data: activity["webhooks"] }), columns, glyphs);
  }
}

const rateNames = ["accepted", "delivered", "deferred", "bounced"];

function overview(activity: Row, columns: number, room: number, glyphs: Glyphs): Line[] {
  const rates = part(activity, "per_second");
  const queue = part(activity, "queue");
  const top: Line[] = [
    ...rateNames.map((name) => ({ text: rateLine(name, numbers(rates[name]), columns, glyphs) })),
    { text: "" },
    {
      text: `queue      ${["queued", "deferred", "scheduled", "held"].map((name) => `${amount(queue[name])} ${name}`).join(", ")}`,
    },
    { text: `oldest     ${oldest(activity, queue)}` },
    {
      text: `sending    ${amount(queue["sending"])} recipients, ${amount(activity["connections"])} connections open${unwritten(activity)}`,
    },
    { text: "" },
  ];
  const slowed = rowsOf({ data: activity["backing_off"] });
  const below = Math.max(0, room - top.length);
  const forSlowed = Math.min(slowed.length + 2, Math.max(2, Math.floor(below / 2)));
  const table = mailTable("provider", rowsOf({ data: activity["providers"] }), "provider", columns, glyphs);
  return [
    ...top,
    ...table.slice(0, Math.max(0, below - forSlowed)),
    { text: "" },
    ...slowedLines(slowed, activity).slice(0, forSlowed - 1),
  ];
}

/** `accepted    1,204.3/s  ▁▂▃`: the mean of ten seconds, and the minute. */
function rateLine(name: string, seconds: number[], columns: number, glyphs: Glyphs): string {
  const last = seconds.slice(-10);
  const mean = last.length === 0 ? 0 : last.reduce((sum, one) => sum + one, 0) / last.length;
  const text = `${name.padEnd(9)}  ${rateText(mean).padStart(8)}/s  `;
  return text + sparkline(seconds, Math.max(0, columns - text.length), glyphs);
}

function slowedLines(slowed: Row[], activity: Row): Line[] {
  if (slowed.length === 0) return [{ text: "backing off: nowhere", tone: "dim" }];
  return [
    { text: `backing off at ${slowed.length}`, tone: "bold" },
    ...slowed.map((row): Line => {
      const from = row["sending_ip"] === null ? "" : ` from ${cell(row["sending_ip"])}`;
      const share = `${Math.round(Number(row["factor"] ?? 1) * 100)} % of its limits`;
      const since = spanText(ageMs({ ...row, at: activity["at"] }, "since"));
      return {
        text: `${cell(row["group"])}${from}: ${share} for ${since}: ${cell(row["reply"])}`,
        tone: "warning",
      };
    }),
  ];
}

/** The columns of numbers have their width; the first takes the rest. */
function tableOf(
  title: string,
  heads: string[],
  rows: { name: string; cells: string[]; bad: boolean }[],
  columns: number,
  glyphs: Glyphs,
): Line[] {
  const widths = heads.map((head, i) =>
    Math.max(head.length, ...rows.map(({ cells }) => (cells[i] ?? "").length)),
  );
  const numbersWide = widths.reduce((sum, width) => sum + width + 2, 0);
  const first = Math.max(8, Math.min(40, columns - numbersWide));
  const line = (name: string, cells: string[]): string => {
    const shown = cutTo(name, first, glyphs);
    return `${shown}${" ".repeat(Math.max(0, first - widthOf(shown)))}${cells.map((text, i) => `  ${text.padStart(widths[i] ?? 0)}`).join("")}`;
  };
  if (rows.length === 0) return [{ text: `no ${title} in the last minute`, tone: "dim" }];
  return [
    { text: line(`${title} (last minute)`.toUpperCase(), heads), tone: "bold" },
    ...rows.map(({ name, cells, bad }): Line => ({
      text: line(name, cells),
      ...(bad ? { tone: "warning" } : {}),
    })),
  ];
}

function mailTable(title: string, rows: Row[], key: string, columns: number, glyphs: Glyphs): Line[] {
  const names = ["delivered", "deferred", "bounced", "attempts"];
  return tableOf(
    title,
    columns < 70 ? ["D", "T", "F", "NOW"] : ["DELIVERED", "DEFERRED", "BOUNCED", "UNDER WAY"],
    rows.map((row) => ({
      name: cell(row[key]),
      cells: names.map((name) => amount(row[name])),
      bad: Number(row["bounced"] ?? 0) + Number(row["deferred"] ?? 0) > Number(row["delivered"] ?? 0),
    })),
    columns,
    glyphs,
  );
}

function webhookTable(rows: Row[], columns: number, glyphs: Glyphs): Line[] {
  const names = ["delivered", "failed", "dead_lettered"];
  return tableOf(
    "webhook",
    columns < 70 ? ["OK", "FAIL", "DEAD"] : ["DELIVERED", "FAILED", "DEAD-LETTERED"],
    rows.map((row) => ({
      name:
        columns < 100
          ? cell(row["url"]).replace(/^https:\/\//, "")
          : `${cell(row["id"])} ${cell(row["url"])}`,
      cells: names.map((name) => amount(row[name])),
      bad: Number(row["failed"] ?? 0) > 0,
    })),
    columns,
    glyphs,
  );
}

/** As wide as the narrowest terminal that is common. */
const help: Line[] = [
  "1 2 3 4, tab  overview, providers, addresses, webhooks",
  "p             pause, and go on",
  "?             this help, and away with it",
  "q, Ctrl-C     quit",
  "",
  "Rates are the mean of ten seconds; the line beside them is",
  "the last minute, a second a column.",
  "",
  "Tables count recipients of the last minute: delivered (D),",
  "deferred (T, temporary), bounced (F, failed); and attempts",
  "that are under way.",
  "",
  "Backing off: a receiver said that mail comes too fast, and",
  "its limits are lowered. They come back by a tenth a minute.",
  "",
  "All accounts, without mail of test keys.",
].map((text) => ({ text }));

function cutTo(text: string, columns: number, { ellipsis }: Glyphs): string {
  const shown = fitted(text, columns);
  return shown === text ? text : `${shown.slice(0, -1)}${ellipsis}`;
}

function rateText(value: number): string {
  return value >= 100 ? amount(Math.round(value)) : value.toFixed(1);
}

function amount(value: unknown): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toLocaleString("en") : "0";
}

function oldest(activity: Row, queue: Row): string {
  return queue["oldest_due_at"] === null
    ? "nothing is due"
    : `due for ${spanText(ageMs({ ...queue, at: activity["at"] }, "oldest_due_at"))}`;
}

function unwritten(activity: Row): string {
  return Number(activity["unwritten"] ?? 0) > 0
    ? `, ${amount(activity["unwritten"])} outcomes not written yet`
    : "";
}

/** How long before `at` a time of the row is. */
function ageMs(row: Row, name: string): number {
  const age = Date.parse(String(row["at"])) - Date.parse(String(row[name]));
  return Number.isFinite(age) ? Math.max(0, age) : 0;
}

/** `3d 4h`, `12m 5s`, `0s` */
export function spanText(ms: number): string {
  const total = Math.floor(ms / 1000);
  const parts = [
    [Math.floor(total / 86_400), "d"],
    [Math.floor(total / 3600) % 24, "h"],
    [Math.floor(total / 60) % 60, "m"],
    [total % 60, "s"],
  ] as const;
  const from = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(from < 0 ? 3 : from)
    .slice(0, 2)
    .map(([count, unit]) => `${count}${unit}`)
    .join(" ");
}

function numbers(value: unknown): number[] {
  return Array.isArray(value) ? value.map((one) => (typeof one === "number" ? one : 0)) : [];
}

function part(row: Row, name: string): Row {
  const value = row[name];
  return value !== null && typeof value === "object" ? (value as Row) : {};
}
