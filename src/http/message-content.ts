// What a message says, as it is shown: its bytes as they were accepted, streamed, or taken apart. What retention has
// removed is not there any more.
import { Readable } from "node:stream";
import type { z } from "zod";
import { Refusal } from "../errors.ts";
import { ContentGone, type MessageRecord } from "../store/store.ts";
import type { RouteDeps } from "./deps.ts";
import { json, type Reply } from "./route.ts";
import type { contentShape } from "./shapes/messages.ts";

type Deps = Pick<RouteDeps, "store" | "log">;

/** Throws Refusal resource_not_found where it is gone. */
export async function contentOf(deps: Deps, message: MessageRecord, raw: boolean): Promise<Reply> {
  try {
    return await (raw ? rawContent(deps, message) : partsOf(deps, message));
  } catch (error) {
    if (error instanceof ContentGone) throw contentGone();
    throw error;
  }
}

/** The first chunk is fetched before the answer begins, so that what is gone is a 404. */
async function rawContent({ store }: Deps, message: MessageRecord): Promise<Reply> {
  if (!message.content) throw contentGone();
  const chunks = store.openContent(message.content)[Symbol.asyncIterator]();
  const first = await chunks.next();
  const rest = async function* (): AsyncGenerator<Buffer> {
    try {
      for (let next = first; !next.done; next = await chunks.next()) yield next.value;
    } finally {
      await chunks.return?.();
    }
  };
  const headers = { "content-type": "message/rfc822", "content-length": String(message.content.sizeBytes) };
  return { status: 200, headers, body: Readable.from(rest(), { objectMode: false }) };
}

async function partsOf({ store, log }: Deps, message: MessageRecord): Promise<Reply> {
  if (!message.content) throw contentGone();
  const chunks: Buffer[] = [];
  for await (const chunk of store.openContent(message.content)) chunks.push(chunk);
  const { default: PostalMime } = await import("postal-mime");
  try {
    const mail = await PostalMime.parse(Buffer.concat(chunks));
    const body: z.input<typeof contentShape> = {
      text: mail.text ?? null,
      html: mail.html ?? null,
      headers: mail.headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
      attachments: mail.attachments.map(({ filename, mimeType, content }) => ({
        filename,
        content_type: mimeType,
        size_bytes: typeof content === "string" ? Buffer.byteLength(content) : content.byteLength,
      })),
    };
    return json(200, body);
  } catch (error) {
    log.warn({ message: message.id, err: String(error) }, "a stored message could not be taken apart");
    throw new Refusal(
      "upstream_error",
      "The message cannot be shown in parts; ask for it with Accept: message/rfc822.",
    );
  }
}

function contentGone(): Refusal {
  return new Refusal("resource_not_found", "The content of the message is not kept any more.");
}
