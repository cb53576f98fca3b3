// GET /v1/messages/{id}/content: a message as it was accepted, or taken apart, streamed either way as fast as the client
// takes it. It is taken apart in a thread of its own (parsing); a message beyond the limits of that thread is shown as
// bytes only. Content that retention has deleted is 404.
import { Readable } from "node:stream";
import { z } from "zod";
import { Refusal } from "../../errors.ts";
import type { ContentRef } from "../../model/content.ts";
import type { MessageRecord } from "../../model/message.ts";
import { BeyondLimit, ParsingFailed } from "../../parsing/parsing.ts";
import { ContentGone } from "../../store/store.ts";
import { count } from "../../value-schemas.ts";
import { ClientGone } from "../body.ts";
import type { RouteDeps } from "../deps.ts";
import { route, type Call, type Reply, type Route } from "../route.ts";
import { messageOf, messageRead } from "./messages.ts";

const contentSchema = z
  .strictObject({
    text: z.string().nullable(),
    html: z.string().nullable(),
    headers: z.array(z.strictObject({ name: z.string(), value: z.string() })),
    attachments: z.array(
      z.strictObject({ filename: z.string().nullable(), content_type: z.string(), size_bytes: count }),
    ),
  })
  .meta({ id: "MessageContent" });

/** The mail as it was accepted. */
const rawMessage = z.string().meta({ description: "The bytes as they were accepted (RFC 5322)." });

export function messageContentRoutes(deps: RouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/v1/messages/{id}/content",
      summary: "Get the content of a message",
      answers: { 200: { "application/json": contentSchema, "message/rfc822": rawMessage } },
      refuses: ["resource_not_found", "conflict", "rate_limit_exceeded", "upstream_error"],
      lastModifiedFrom: ["messages"],
      ...messageRead,
      scopes: ["send"],
      async handle(call) {
        const message = await messageOf(deps.store, call);
        const shown = await contentOf(deps, message, call);
        return { ...shown, lastModified: message.createdAt }; // never edited; once it is gone, 404
      },
    }),
  ];
}

type Deps = Pick<RouteDeps, "store" | "log" | "parsing">;
type ContentCall = Pick<Call<unknown, unknown>, "account" | "prefers" | "onClose">;

/** Throws Refusal resource_not_found where it is gone. */
async function contentOf(deps: Deps, message: MessageRecord, call: ContentCall): Promise<Reply> {
  const { content } = message;
  try {
    if (!content) throw contentGone();
    if (call.prefers("message/rfc822")) return await rawContent(deps, content);
    return await partsOf(deps, message, content, call);
  } catch (error) {
    if (error instanceof ContentGone) throw contentGone();
    throw error;
  }
}

/** The first chunk is fetched before the answer begins, so that what is gone is a 404. */
async function rawContent({ store }: Deps, content: ContentRef): Promise<Reply> {
  const chunks = store.openContent(content)[Symbol.asyncIterator]();
  const first = await chunks.next();
  const rest = async function* (): AsyncGenerator<Buffer> {
    for (let next = first; !next.done; next = await chunks.next()) yield next.value;
  };
  const headers = { "content-type": "message/rfc822", "content-length": String(content.sizeBytes) };
  return {
    status: 200,
    headers,
    body: streamed(rest(), () => void chunks.return?.().catch(() => undefined)),
  };
}

async function partsOf(
  { store, log, parsing }: Deps,
  message: MessageRecord,
  content: ContentRef,
  { account, onClose }: ContentCall,
): Promise<Reply> {
  let gone = false;
  onClose(() => (gone = true));
  try {
    const { chunks, release } = await parsing.readContent({
      accountKey: account.key,
      open: () => store.openContentForThread(content),
      goOn() {
        if (gone) throw new ClientGone();
      },
    });
    return { status: 200, body: streamed(chunks, release) };
  } catch (error) {
    const bytes = "ask for the message as it is with Accept: message/rfc822.";
    if (error instanceof BeyondLimit)
      throw new Refusal("conflict", `The message has ${error.message}: it is not shown in parts; ${bytes}`);
    if (!(error instanceof ParsingFailed)) throw error;
    log.warn({ message: message.id, detail: error.message }, "a stored message could not be parsed");
    throw new Refusal("upstream_error", `The message could not be parsed; try again, or ${bytes}`);
  }
}

/** `release` also where the answer is thrown away before its first byte: a generator that was never asked ends nothing. */
function streamed(chunks: AsyncIterable<Uint8Array>, release: () => void): Readable {
  const body = Readable.from(chunks, { objectMode: false });
  body.once("close", release);
  return body;
}

function contentGone(): Refusal {
  return new Refusal("resource_not_found", "The content of the message is no longer kept.");
}
