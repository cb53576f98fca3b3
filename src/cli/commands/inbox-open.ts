// `svc inbox open`: a mail of the inbox as a file that only its owner can read, opened in the browser where there is one.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cli } from "../cli.ts";
import { usage } from "../fault.ts";
import { mailPage, type ShownMail } from "../mail-page.ts";

export interface OpenFlags {
  to?: string;
  browser?: boolean;
}

export async function openMail(cli: Cli, id: string, mail: ShownMail, flags: OpenFlags): Promise<void> {
  const file = flags.to ?? join(mkdtempSync(join(tmpdir(), "svc-inbox-")), "mail.html");
  try {
    writeFileSync(file, mailPage(mail), { mode: 0o600, flag: "wx" });
  } catch (error) {
    const exists = error instanceof Error && "code" in error && error.code === "EEXIST";
    throw usage(`--to: ${file} ${exists ? "exists, and is not overwritten" : "cannot be written"}`);
  }
  const program = flags.browser === false ? null : browserOf(cli);
  const opened = program !== null && (await start(program, file));
  if (cli.out.json) return cli.out.body(JSON.stringify({ message_id: id, file, opened }));
  cli.out.line(file);
  if (!opened) cli.out.next("Open this file in a browser; it runs no script and loads nothing.");
}

/** Null where nobody sees a browser: no terminal, no display, or root, as whom no browser should run. */
function browserOf(cli: Cli): string | null {
  const { env, stdout, uid } = cli.io;
  if (!stdout.isTTY || uid === 0) return null;
  if (process.platform === "darwin") return "open";
  return env["DISPLAY"] || env["WAYLAND_DISPLAY"] ? "xdg-open" : null;
}

/** Whether it could be started. The file is its one argument: no shell reads it. */
async function start(program: string, file: string): Promise<boolean> {
  const { spawn } = await import("node:child_process");
  return new Promise((resolve) => {
    const child = spawn(program, [file], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
