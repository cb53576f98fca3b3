// The backlog over time as an SVG file: a panel for each number of addresses, the providers stacked, one scale for all.
import { hourMs } from "../../src/clock.ts";
import { sampleMs } from "./ledger.ts";
import { countOf, lastWaiting, type Played } from "./table.ts";

const size = { width: 960, panel: 220, left: 70, right: 20, top: 34, bottom: 26 };
const colours = ["#4285f4", "#f25022", "#7b2ff7", "#8a8a8a", "#2e9e5b"];

export function svgOf(played: readonly Played[]): string {
  const until = Math.max(...played.map(({ day }) => lastWaiting(day)));
  const most = Math.max(1, ...played.map(({ day }) => Math.max(...day.total.backlog)));
  const height = played.length * size.panel + size.bottom;
  const panels = played.map((one, i) => panelOf(one, i * size.panel, until, most));
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${size.width}" height="${height}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
${panels.join("\n")}
${legend(played)}
</svg>
`;
}

function panelOf({ addresses, day }: Played, top: number, until: number, most: number): string {
  const [from, to] = [top + size.top, top + size.panel];
  const x = (ms: number): number => size.left + (ms / until) * (size.width - size.left - size.right);
  const y = (messages: number): number => to - (messages / most) * (to - from);
  const samples = Math.floor(until / sampleMs) + 1;
  let below = new Float64Array(samples);
  const areas = day.rows.map(({ row }, i) => {
    const above = below.map((base, at) => base + (row.backlog[at] ?? 0));
    const point = (messages: number, at: number): string =>
      `${x(at * sampleMs).toFixed(1)},${y(messages).toFixed(1)}`;
    const points = [...[...above].map(point), ...[...below].map(point).toReversed()];
    below = above;
    return `<polygon points="${points.join(" ")}" fill="${colours[i % colours.length]}"/>`;
  });
  const title = `<text x="${size.left}" y="${from - 8}" font-weight="bold">${countOf(addresses)}</text>`;
  return [title, ...grid(x, y, from, to, until, most), ...areas].join("\n");
}

function grid(
  x: (ms: number) => number,
  y: (messages: number) => number,
  from: number,
  to: number,
  until: number,
  most: number,
): string[] {
  const lines: string[] = [];
  const everyHours = until > 48 * hourMs ? 6 : 3;
  for (let hour = 0; hour * hourMs <= until; hour += everyHours) {
    const at = x(hour * hourMs).toFixed(1);
    lines.push(
      `<line x1="${at}" y1="${from}" x2="${at}" y2="${to}" stroke="${hour % 24 === 0 ? "#999" : "#ddd"}"/>`,
    );
    lines.push(`<text x="${at}" y="${to + 14}" text-anchor="middle" fill="#555">${hour}</text>`);
  }
  const step = stepOf(most);
  for (let here = 0; here <= most; here += step) {
    const at = y(here).toFixed(1);
    lines.push(
      `<line x1="${size.left}" y1="${at}" x2="${size.width - size.right}" y2="${at}" stroke="#ddd"/>`,
    );
    lines.push(
      `<text x="${size.left - 6}" y="${Number(at) + 4}" text-anchor="end" fill="#555">${amount(here)}</text>`,
    );
  }
  return lines;
}

/** 1, 2 or 5 times a power of ten, so that three to five lines fit. */
function stepOf(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most));
  return [0.2, 0.5, 1, 2].map((times) => times * power).find((step) => most / step <= 5) ?? power;
}

const amount = (messages: number): string =>
  messages >= 1e6 ? `${messages / 1e6} M` : messages >= 1e3 ? `${messages / 1e3} k` : String(messages);

function legend([first]: readonly Played[]): string {
  const entries = (first?.day.rows ?? []).map(({ name }, i) => {
    const x = size.width - size.right - 90 * (5 - i);
    const box = `<rect x="${x}" y="10" width="10" height="10" fill="${colours[i % colours.length]}"/>`;
    return `${box}<text x="${x + 14}" y="19">${name}</text>`;
  });
  return entries.join("\n");
}
