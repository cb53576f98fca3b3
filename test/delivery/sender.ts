// The whole program between a scripted DNS and scripted receivers, on a clock that a test sets ahead: what becomes of a
// message, as its events tell it and as the receivers saw it.
import { eventually } from "../support/appliance.ts";
import type { DnsServer } from "../support/dns-server.ts";
import { startProgram, type Program, type ProgramResponse } from "../support/program.ts";
import { connectSmtp, type SmtpClient } from "../support/smtp-client.ts";
import { startReceiver, type Receiver, type ReceiverOptions } from "../support/smtp-receiver.ts";
import { TravelClock } from "../support/travel-clock.ts";

/** An event of one recipient. */
export interface Told {
  event: string;
  occurred_at: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- the fields depend on the event
  data: any;
}

export interface Sender {
  program: Program;
  dns: DnsServer;
  clock: TravelClock;
  receiver(domain: string): Receiver;
  /** The port of every receiver. */
  port: number;
  /** From `a@ok.test`; gives the id. Fails where it is not accepted. */
  send(body: Record<string, unknown>): Promise<string>;
  /** The same, with whatever the answer is. */
  ask(body: Record<string, unknown>): Promise<ProgramResponse>;
  /** The events of a message, or of one recipient of it, once there are so many. */
  events(id: string, count: number, to?: string): Promise<Told[]>;
  /** Sets the clock ahead to when a deferred recipient is due, and waits for what becomes of it then. */
  next(id: string, to?: string): Promise<Told>;
  /** The same of several messages to one recipient each, once the last of them is due. */
  nextOf(ids: string[]): Promise<Told[]>;
  stop(): Promise<void>;
}

export const minute = 60_000;
export const hour = 60 * minute;

/**
 * `domains`: each to the loopback address of its only MX. `receiver`: what all of them do. `relay`: with the listeners of
 * mail programs.
 */
export async function startSender(
  domains: Record<string, string>,
  { receiver = {}, relay = false }: { receiver?: ReceiverOptions; relay?: boolean } = {},
): Promise<Sender> {
  const clock = new TravelClock();
  const receivers: Record<string, Receiver> = {};
  let port = 0;
  for (const [domain, address] of Object.entries(domains)) {
    receivers[domain] = await startReceiver({ ...receiver, address, port });
    ({ port } = receivers[domain]);
  }
  const program = await startProgram({
    clock,
    tls: relay,
    config: { outbound: { port, allow_networks: ["127.0.0.0/8"] } },
  });
  const { dns } = program;
  for (const [domain, address] of Object.entries(domains)) {
    dns.set(domain, "MX", [`10 mx.${domain}`]);
    dns.set(`mx.${domain}`, "A", [address]);
  }
  const ask: Sender["ask"] = (body) =>
    program.ask({
      method: "POST",
      target: "/v1/messages",
      headers: { "content-type": "application/json", "x-svc-account": "default" },
      body: JSON.stringify({ from: "a@ok.test", subject: "Hello", text: "Hi", ...body }),
      listener: "admin",
    });
  const events: Sender["events"] = (id, count, to) =>
    eventually(
      async () => {
        const { data } = (await program.admin("GET", `/v1/events?limit=200&message_id=${id}`)) as {
          data: Told[];
        };
        const own = data.filter((event) => to === undefined || event.data.to === to);
        return own.length >= count ? own : null;
      },
      undefined,
      `${count} events of ${to ?? id}`,
    );
  const next = async (ids: string[], to?: string): Promise<Told[]> => {
    const before = await Promise.all(ids.map((id) => events(id, 1, to)));
    const due = before.map((told) => Date.parse(told.at(-1)?.data.next_attempt_at));
    if (due.some(Number.isNaN)) throw new Error(`not deferred: ${JSON.stringify(before.at(-1))}`);
    clock.skip(Math.max(0, Math.max(...due) - clock.now())); // while no request is under way, whose time it would end
    const after = ids.map((id, i) => events(id, (before[i]?.length ?? 0) + 1, to));
    return (await Promise.all(after)).map((told) => told.at(-1) as Told);
  };
  return {
    program,
    dns,
    clock,
    port,
    receiver(domain) {
      const found = receivers[domain];
      if (!found) throw new Error(`no receiver of ${domain}`);
      return found;
    },
    ask,
    async send(body) {
      const answer = await ask(body);
      if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`);
      return JSON.parse(answer.text).id;
    },
    events,
    next: async (id, to) => (await next([id], to))[0] as Told,
    nextOf: (ids) => next(ids),
    async stop() {
      await program.stop();
      await Promise.all(Object.values(receivers).map((receiver) => receiver.stop()));
    },
  };
}

/** A mail program's session with the relay, under TLS and logged in. */
export async function relayClient(program: Program): Promise<SmtpClient> {
  const { username, password } = await program.admin("POST", "/v1/smtp_credentials", { name: "test" });
  const client = await connectSmtp({ port: program.mailPorts("smtps")[0] ?? 0, tls: true });
  await client.answer();
  await client.command("EHLO client.test");
  await client.command(`AUTH PLAIN ${Buffer.from(`\0${username}\0${password}`).toString("base64")}`);
  return client;
}
