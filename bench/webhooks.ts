// The rows of webhooks: a receiver in its own process, all events to it, beside the sending of mail or as a backlog.
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { createGroup, type Group } from "./group.ts";
import type { ReceiverStats } from "./load/webhook-receiver.ts";
import { count, figures, watchMemory, type Measured } from "./measure.ts";
import type { Party } from "./parties/party.ts";
import { startProduct, type RunningProduct } from "./parties/product.ts";
import { createKey, runRest } from "./rest.ts";
import { folder, nowNs, ports } from "./tools.ts";

interface WithReceiver extends RunningProduct {
  receiver: { group: Group; stats(): Promise<ReceiverStats> };
  /** A paused endpoint gathers what it would have had. */
  pause(paused: boolean): Promise<void>;
}

const stallMs = 30_000;
const recipientsMost = 50;

/** svc with an endpoint of all events. */
export const productWithReceiver: Party = {
  name: "svc",
  async start(setting, tools): Promise<WithReceiver> {
    const [certificate, key] = makeCertificate("hooks.test");
    const running = await startProduct(setting, tools, {
      config: { webhooks: { allow_networks: ["127.0.0.0/8"], ca_file: certificate }, limits: raisedLimits },
    });
    const group = createGroup("receiver");
    const script = join(import.meta.dirname, "load/webhook-receiver.ts");
    const child = group.spawn(process.execPath, [script, String(ports.webhooks), certificate, key], {
      stdio: ["pipe", "pipe", 2],
    });
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error("the receiver has no pipes");
    const lines = createInterface({ input: stdout });
    const line = async (): Promise<string> => ((await once(lines, "line")) as [string])[0];
    await line();
    const url = `https://hooks.test:${ports.webhooks}/events`;
    const made = await running.admin("POST", "/v1/webhooks", { url });
    if (made.status !== 201) throw new Error(`the endpoint was not made: ${made.text}`);
    stdin.write(`${made.json.secret}\n`);
    return {
      ...running,
      receiver: {
        group,
        stats: async () => {
          const answer = line();
          child.kill("SIGUSR2");
          return JSON.parse(await answer) as ReceiverStats;
        },
      },
      async pause(yes) {
        const answer = await running.admin("PATCH", `/v1/webhooks/${made.json.id}`, { active: !yes });
        if (answer.status !== 200) throw new Error(`the endpoint is as it was: ${answer.text}`);
      },
      async stop() {
        await running.stop();
        await group.end();
      },
    };
  },
};

/** Limits of the API that are no part of what is measured. */
export const raisedLimits = {
  rates: {
    "messages-write": { burst: 1_000_000, per_second: 1_000_000 },
    account: { burst: 1_000_000, per_second: 1_000_000 },
  },
};

/** Makes so many events (mail of a test key, which is caught), then times how fast the endpoint gets them. */
export async function measureBacklog(given: unknown, events: number): Promise<Measured> {
  const running = given as WithReceiver;
  const generator = createGroup("generator");
  try {
    const { events: had } = await running.receiver.stats();
    await running.pause(true);
    await runRest(generator, {
      key: await createKey(running, { test: true }),
      messages: events / recipientsMost,
      recipients: recipientsMost,
      sizeBytes: 100,
    });
    for (;;) {
      const { json } = await running.admin("GET", "/v1/status");
      const { scheduled, queued, deferred, sending } = json.queue;
      if (scheduled + queued + deferred + sending === 0) break;
      await wait(200);
    }
    const memory = watchMemory(running.group);
    const before = count(running.group, generator, running.receiver.group);
    const beganNs = nowNs();
    await running.pause(false);
    const stats = await received(running, had + events);
    const after = count(running.group, generator, running.receiver.group);
    const measured = figures(before, after, { beganNs, endedNs: stats.lastNs }, events, stats.lastNs);
    const fault =
      stats.events < had + events || stats.wrong > 0
        ? `${stats.events - had} of ${events} events, ${stats.wrong} with a wrong signature`
        : measured.fault;
    return { ...measured, acceptedPerSecond: NaN, generatorMicros: NaN, peakBytes: memory.stop(), fault };
  } finally {
    await generator.end();
  }
}

async function received(running: WithReceiver, events: number): Promise<ReceiverStats> {
  let [seen, since] = [-1, performance.now()];
  for (;;) {
    const stats = await running.receiver.stats();
    if (stats.events >= events) return stats;
    if (stats.events !== seen) [seen, since] = [stats.events, performance.now()];
    else if (performance.now() - since > stallMs) return stats;
    await wait(100);
  }
}

function makeCertificate(name: string): [certificate: string, key: string] {
  const [certificate, key] = [join(folder, "hooks.cert.pem"), join(folder, "hooks.key.pem")];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const about = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`, "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...about, "-keyout", key, "-out", certificate], {
    stdio: "ignore",
  });
  return [certificate, key];
}
