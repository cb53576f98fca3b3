// What needs no load: one look each, and what to compare the others with.
import { connectSmtp } from "../../../test/support/smtp-client.ts";
import type { Attack, Facts } from "../attack.ts";
import { asker, dialTls, requestText } from "../wire.ts";
import type { Arrived } from "../world.ts";

const proxy = "127.0.0.9";
const forged = "Authentication-Results: mail.svc.test; dkim=pass header.d=bank.example";

export const smallAttacks: Attack[] = [
  {
    name: "busy-core",
    title: "no attack, for comparison: a program of its own keeps one core busy and sends nothing",
    async run(_target, _given, signal) {
      const yieldMs = 20;
      while (!signal.aborted) {
        const until = performance.now() + yieldMs;
        while (performance.now() < until);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return {};
    },
  },
  {
    name: "proxy-unknown",
    title: "a client behind a trusted proxy whose address is trusted too sends PROXY UNKNOWN and no login",
    config: {
      relay: { trusted_proxies: [`${proxy}/32`], trusted: [{ network: `${proxy}/32`, account: "default" }] },
    },
    async run({ starttls }) {
      const client = await connectSmtp({ port: starttls, localAddress: proxy });
      client.send("PROXY UNKNOWN\r\n");
      const banner = await client.answer();
      const hello = await client.command("EHLO x");
      const data = "From: a@ok.test\r\nTo: r@known.test\r\nSubject: x\r\n\r\nx\r\n.\r\n";
      const { text } = await client.submit("a@ok.test", ["r@known.test"], data);
      client.end();
      return { banner: banner.text, EHLO: hello.code, "a mail without a login": text };
    },
  },
  {
    name: "small",
    title: "headers of the API, percent-encoded routes, Authentication-Results in our name",
    prepare: async (stand) => ({ login: await stand.loginOf("b") }),
    async run({ https, starttls }, { login = "" }) {
      const socket = await dialTls(https, "127.0.62.1");
      const ask = socket ? asker(socket) : null;
      const docs = (await ask?.(requestText("GET", "/docs", null, null)))?.text ?? "";
      const encoded = await ask?.(requestText("GET", "/%76%31/nothing", null, null));
      const field = (name: string): string =>
        new RegExp(`\\r\\n${name}: ([^\\r]*)`, "i").exec(docs)?.[1] ?? "none";
      const facts: Facts = {
        "Strict-Transport-Security of /docs": field("strict-transport-security"),
        "frame-ancestors of /docs": /frame-ancestors [^;\r]*/.exec(docs)?.[0] ?? "none",
        "GET /%76%31/nothing without a key (401 as of /v1/nothing)": encoded?.status ?? "none",
      };
      const client = await connectSmtp({ port: starttls, localAddress: "127.0.62.1" });
      await client.answer();
      await client.startTls();
      await client.command(`AUTH PLAIN ${login}`);
      const data = `${forged}\r\nFrom: a@b.test\r\nTo: ar@others.test\r\nSubject: x\r\n\r\nx\r\n.\r\n`;
      const { text } = await client.submit("a@b.test", ["ar@others.test"], data);
      client.end();
      return { ...facts, "mail with Authentication-Results in our name": text };
    },
    async after(stand) {
      const [mail] = await stand.world.ask<Arrived[]>("mails", "^ar@others");
      const passed = mail?.head.includes("bank.example");
      return {
        "Authentication-Results in our name arrived": mail ? (passed ? "yes" : "removed") : "no mail",
      };
    },
  },
];
