// `svc top` on a real terminal, tmux's: what is on the screen, at several sizes, and what is left of it afterwards.
import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually, program, runCli } from "../support/appliance.ts";
import { missingTools } from "../support/examples.ts";
import { startSending, type Sending } from "../support/sending.ts";
import { removeFolder } from "../support/folders.ts";

const missing = missingTools(["tmux"]);
if (missing) console.warn(`SKIPPED: svc top on a terminal: ${missing}`);

let dir: string;
let sending: Sending;
beforeAll(async () => {
  if (missing) return;
  dir = mkdtempSync(join(tmpdir(), "svc-top-"));
  sending = await startSending("one.test", { address: "127.0.0.63" });
});
afterAll(async () => {
  if (missing) return;
  tmux("kill-server");
  await sending?.stop();
  removeFolder(dir);
});

function tmux(...args: string[]): string {
  return spawnSync("tmux", ["-L", dir.replaceAll("/", "-"), "-f", "/dev/null", ...args], {
    encoding: "utf8",
    env: { ...process.env, LANG: "C.UTF-8", TERM: "xterm-256color" },
  }).stdout;
}

/** A terminal with a shell's last words before and after the command. */
function open(name: string, columns: number, rows: number): void {
  const run = `echo before; SVC_SOCKET=${sending.svc.socket} ${program} top; echo "code $?"; exec cat`;
  tmux("new-session", "-d", "-s", name, "-x", String(columns), "-y", String(rows), run);
}
const screen = (name: string): string[] => tmux("capture-pane", "-p", "-t", name).split("\n");
const shows = (name: string, what: RegExp): Promise<string[]> =>
  eventually(
    async () => {
      const lines = screen(name);
      return what.test(lines.join("\n")) ? lines : null;
    },
    60_000,
    `${String(what)} on the screen`,
  );
const press = (name: string, key: string): string => tmux("send-keys", "-t", name, key);

test.skipIf(missing)(
  "the mail of now is seen by rate, provider and address; keys choose the view",
  async () => {
    open("mail", 80, 24);
    await shows("mail", /accepted +0\.0\/s/);
    const body = { from: "shop@ok.test", to: ["a@one.test"], subject: "Hello", text: "Hi" };
    for (const to of ["a@one.test", "tempfail@one.test", "permfail@one.test"])
      expect((await sending.svc.api(sending.key, "POST", "/v1/messages", { ...body, to: [to] })).status).toBe(
        202,
      );
    await shows("mail", /accepted +0\.[1-9]\/s +.*█/);
    await shows("mail", /^one\.test +1 +1 +1 +\d+$/m);
    await shows("mail", /1 deferred/);
    press("mail", "3");
    await shows("mail", /ADDRESS \(LAST MINUTE\)/);
    press("mail", "Tab");
    await shows("mail", /no webhook in the last minute/);
    press("mail", "?");
    await shows("mail", /Ctrl-C +quit/);
    tmux("send-keys", "-t", "mail", "-l", "?1p"); // at once, as a slow line brings them
    await shows("mail", /svc top +paused/);
    expect(screen("mail").join("\n")).toMatch(/\[1 overview\][^]*accepted/);
    press("mail", "p");
    await shows("mail", /svc top +up/);
  },
);

test.skipIf(missing).each([
  [80, 24],
  [60, 20],
  [200, 50],
])(
  "on %d by %d the screen is whole: the first line at the top, the keys in the last but one, nothing wrapped",
  async (columns, rows) => {
    const name = `size-${columns}`;
    open(name, columns, rows);
    const lines = await shows(name, /q quit/);
    expect(lines[0]).toMatch(/^svc top +up/);
    expect(lines.findIndex((line) => line.startsWith("q quit"))).toBe(rows - 2);
    expect(lines.filter((line) => /^(?:accepted|delivered|deferred|bounced) /.test(line)).length).toBe(4);
  },
);

test.skipIf(missing)("a terminal that changes its size gets a screen of the new one", async () => {
  open("resize", 120, 30);
  await shows("resize", /q quit/);
  for (const [columns, rows] of [
    [60, 16],
    [100, 40],
  ] as const) {
    tmux("resize-window", "-t", "resize", "-x", String(columns), "-y", String(rows));
    await eventually(async () => {
      const lines = screen("resize");
      const last = lines.findIndex((line) => line.startsWith("q quit"));
      return (
        last === rows - 2 &&
        (lines[0] ?? "").startsWith("svc top") &&
        lines.every((line) => line.length <= columns)
      );
    });
  }
});

test.skipIf(missing).each([
  ["q", "q", 0],
  ["Ctrl-C", "C-c", 130],
])("%s gives the terminal back as it was", async (_name, key, code) => {
  const name = `end-${code}`;
  open(name, 80, 24);
  await shows(name, /q quit/);
  press(name, key);
  const lines = await shows(name, /code \d+/);
  expect(lines.filter((line) => line !== "")).toEqual(["before", `code ${code}`]);
  tmux("send-keys", "-t", name, "-l", "echoed");
  await shows(name, /echoed/); // the terminal is out of raw mode: it echoes what is typed
  expect(tmux("display-message", "-p", "-t", name, "#{cursor_flag} #{alternate_on}").trim()).toBe("1 0");
});

test.skipIf(missing)(
  "a daemon that stops is told of in the first line, and the screen goes on when it is back",
  async () => {
    open("gone", 100, 24);
    await shows("gone", /svc top +up/);
    await sending.svc.kill("SIGTERM");
    await shows("gone", /svc top +no daemon answers/);
    await sending.svc.restart();
    await shows("gone", /svc top +up/);
  },
);

test("into a pipe it is exit 2", async () => {
  const ran = await runCli(["top"], { SVC_SOCKET: "/nowhere" });
  expect([ran.code, ran.stdout]).toEqual([2, ""]);
});
