// A page in a headless Chromium, driven over its DevTools socket: what it asked for, what it complained of, what it shows.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "./appliance.ts";
import { removeFolder } from "./folders.ts";

export interface Visit {
  /** Every URL that the page asked for. */
  requests: string[];
  /** Errors and warnings of its console, refusals of its policy among them. */
  complaints: string[];
  /** What stands on the page. */
  text: string;
}

interface Message {
  id?: number;
  method?: string;
  params?: {
    request?: { url: string };
    entry?: { level: string; text: string };
    exceptionDetails?: { text: string };
    type?: string;
  };
  result?: { result?: { value?: unknown } };
}

/** A click on the first thing that the selector names, after which `shown` stands on the page. */
export interface Step {
  press: string;
  shown: string;
}

/** Opens the page, waits until `shown` stands on it (`whole`: and its frames are loaded), then does each step. Any certificate is taken. */
export async function visit(
  url: string,
  shown: string,
  { steps = [], userAgent, whole = false }: { steps?: Step[]; userAgent?: string; whole?: boolean } = {},
): Promise<Visit> {
  const profile = mkdtempSync(join(tmpdir(), "svc-chromium-"));
  const options = ["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"];
  if (userAgent !== undefined) options.push(`--user-agent=${userAgent}`);
  const own = [`--user-data-dir=${profile}`, "--remote-debugging-port=0", "about:blank"];
  const browser = spawn("chromium", [...options, ...own], { stdio: "ignore" });
  try {
    const portFile = join(profile, "DevToolsActivePort");
    const port = await eventually(
      () => Promise.resolve(existsSync(portFile) && readFileSync(portFile, "utf8").split("\n")[0]),
      20_000,
      "the browser's start",
    );
    const pages = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
      type: string;
      webSocketDebuggerUrl: string;
    }[];
    const page = pages.find(({ type }) => type === "page");
    if (!page) throw new Error("the browser has no page");
    return await watch(page.webSocketDebuggerUrl, url, shown, steps, whole);
  } finally {
    const gone = new Promise((resolve) => browser.once("exit", resolve));
    browser.kill();
    await gone;
    removeFolder(profile);
  }
}

async function watch(
  socketUrl: string,
  url: string,
  first: string,
  steps: Step[],
  whole: boolean,
): Promise<Visit> {
  const socket = new WebSocket(socketUrl);
  const found: Visit = { requests: [], complaints: [], text: "" };
  const answers = new Map<number, (message: Message) => void>();
  let id = 0;
  const call = (method: string, params: object = {}): Promise<Message> =>
    new Promise((resolve) => {
      answers.set(++id, resolve);
      socket.send(JSON.stringify({ id, method, params }));
    });
  socket.addEventListener("message", ({ data }) => {
    const message = JSON.parse(String(data)) as Message;
    const { method, params } = message;
    if (message.id !== undefined) answers.get(message.id)?.(message);
    if (method === "Network.requestWillBeSent" && params?.request) found.requests.push(params.request.url);
    if (method === "Log.entryAdded" && params?.entry) found.complaints.push(params.entry.text);
    if (method === "Runtime.exceptionThrown") found.complaints.push(params?.exceptionDetails?.text ?? "");
  });
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  for (const domain of ["Network", "Log", "Runtime", "Page"]) await call(`${domain}.enable`);
  await call("Page.navigate", { url });
  const read = async (): Promise<string> => {
    const text = "document.body?.innerText ?? ''";
    const expression = whole ? `document.readyState === "complete" ? ${text} : ""` : text;
    const answer = await call("Runtime.evaluate", { expression });
    const value = answer.result?.result?.value;
    return typeof value === "string" ? value : "";
  };
  const shows = (shown: string): Promise<unknown> =>
    eventually(
      async () => {
        found.text = await read();
        return found.text.includes(shown);
      },
      20_000,
      `"${shown}" on the page`,
    ).catch((error: unknown) => {
      throw new Error(
        `${String(error)}; ${found.complaints.join("; ")}; the page: ${found.text.slice(0, 500)}`,
      );
    });
  await shows(first);
  for (const { press, shown } of steps) {
    await call("Runtime.evaluate", {
      expression: `document.querySelector(${JSON.stringify(press)}).click()`,
      userGesture: true,
    });
    await shows(shown);
  }
  socket.close();
  return found;
}
