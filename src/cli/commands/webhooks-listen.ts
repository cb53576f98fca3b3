// `svc webhooks listen`: the events of an account, posted as they are recorded to a program that is being written, which
// needs no public address for it. Nothing is kept: the server knows no endpoint, and each event is posted once.
import { isoTime } from "../../clock.ts";
import { webhookFormats } from "../../model/webhook.ts";
import { orList } from "../../word-list.ts";
import type { Cli } from "../cli.ts";
import { followEvents, type FollowedEvent } from "../event-stream.ts";
import { usage } from "../fault.ts";
import { cell } from "../text.ts";
import { forward, forwardUrl, type Forwarded, type Signing } from "../webhook-forward.ts";
import { givenSecret } from "../webhook-secret.ts";

export interface ListenFlags {
  forwardTo: string;
  events?: string[];
  after?: string;
  format: string;
  secretFile?: string;
}

export async function listen(cli: Cli, flags: ListenFlags): Promise<void> {
  const url = forwardUrl(flags.forwardTo);
  const format = webhookFormats.find((known) => known === flags.format);
  if (!format) throw usage(`--format: found "${flags.format}", expected ${orList(webhookFormats)}`);
  const given = givenSecret(cli, flags.secretFile);
  const events = await followEvents(cli, {
    after: flags.after,
    types: flags.events,
    onLost: (why, seconds) => cli.out.note(`${why}; trying again in ${seconds} s`),
  });
  const signing = { secret: given ?? (await newSecretShown(cli)), format };
  cli.out.note(`Forwarding events to ${url.href} until Ctrl-C.`);
  let last = flags.after;
  let off = (): void => undefined;
  const interrupted = new Promise<"interrupted">((resolve) => {
    off = cli.io.onSignal("SIGINT", () => resolve("interrupted"));
  });
  try {
    for (;;) {
      const next = await Promise.race([events.next(), interrupted]);
      if (next === "interrupted" || next.done === true) break;
      await forwardOne(cli, url, signing, next.value);
      last = next.value.id;
    }
  } finally {
    off();
  }
  if (last !== undefined)
    cli.out.next(`To continue: ${cli.program} webhooks listen --forward-to ${url.href} --after ${last}`);
  cli.io.exit(130);
}

/** Apart from what may be piped: the events are on stdout. */
async function newSecretShown(cli: Cli): Promise<string> {
  const { newSecret } = await import("../../webhooks/secret.ts");
  const secret = newSecret();
  cli.out.note(`The signing secret is shown only once; --secret-file takes one of your own:\n${secret}`);
  return secret;
}

async function forwardOne(cli: Cli, url: URL, signing: Signing, event: FollowedEvent): Promise<void> {
  const forwarded = await forward(cli, url, signing, event);
  const { answer: _answer, ...shown } = forwarded;
  if (cli.out.json) cli.out.body(JSON.stringify({ event_id: event.id, event: event.type, ...shown }));
  else cli.out.line([cell(isoTime(cli.io.clock.now())), event.type, event.id, wordsOf(forwarded)].join("  "));
  await cli.out.drained();
}

/** `200 in 12 ms`, `500 in 3 ms: Internal Server Error`, `no answer: connect ECONNREFUSED 127.0.0.1:3000`. */
function wordsOf({ status, duration_ms: duration, error, answer }: Forwarded): string {
  if (status === null) return `no answer: ${error ?? "unknown"}`;
  return `${status} in ${duration} ms${answer === null || answer === "" ? "" : `: ${answer}`}`;
}
