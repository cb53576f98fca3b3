// Prints the events, oldest first, one a line: node events.mjs [--follow] [CURSOR]
// The cursor goes to stderr: keep it, and the next run begins behind what this one has printed.
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "./svc.mjs";

const follow = process.argv.includes("--follow");
let cursor = process.argv.slice(2).find((argument) => argument !== "--follow");

for (;;) {
  const query = new URLSearchParams({ limit: "1000", ...(cursor ? { cursor } : {}) });
  const page = await request("GET", `/v1/events?${query}`);
  for (const event of page.data) console.log(JSON.stringify(event));
  cursor = page.next_cursor ?? cursor; // the last page has one too: what happens later comes behind it
  if (page.has_more) continue;
  if (!follow) break;
  await sleep(2000);
}
if (cursor) console.error(cursor);
