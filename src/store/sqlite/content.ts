// The content of messages: up to 64 KB in a row of its own, above in a file of the spool.
import type { Database, Statement } from "better-sqlite3";
import type { ContentRef } from "../../model/content.ts";
import type { MessageStore } from "../interface/messages.ts";
import type { Spool } from "./spool.ts";
import { ContentGone } from "../store.ts";
import { none, noun } from "./noun.ts";

function createContentLookups(db: Database) {
  const content: Statement<[number], { bytes: Buffer }> = db.prepare(
    "SELECT bytes FROM content WHERE message_key = ?",
  );
  return { content: (messageKey: number) => content.get(messageKey)?.bytes ?? null };
}

export const content = noun({
  commands: none,
  touches: {},
  lookups: createContentLookups,
  lists: none,
  calls: ({
    spool,
    lookups,
    content: kept,
  }): Pick<MessageStore, "putContent" | "dropContent" | "openContent" | "openContentForThread"> => ({
    putContent: (bytes) => spool.put(bytes),
    dropContent: (dropped) => spool.drop(dropped),
    openContent: (ref, offset = 0) =>
      ref.kind === "spool"
        ? spool.open(ref.name, offset)
        : openInline(kept.find(ref.id) ?? lookups.content(ref.id), ref, offset),
    async openContentForThread(ref) {
      if (ref.kind === "spool") {
        const file = await spool.openFile(ref.name);
        return { content: { kind: "file", fd: file.fd }, close: () => file.close() };
      }
      const bytes = kept.find(ref.id) ?? lookups.content(ref.id);
      if (!bytes) throw gone(ref);
      return { content: { kind: "bytes", bytes }, close: () => Promise.resolve() };
    },
  }),
});

/** One read: a row's bytes are in memory as a whole or not at all. */
async function* openInline(
  bytes: Buffer | null,
  ref: Extract<ContentRef, { kind: "inline" }>,
  offset: number,
): AsyncIterable<Buffer> {
  if (!bytes) throw gone(ref);
  if (offset < bytes.byteLength) yield bytes.subarray(offset);
}

const gone = ({ id }: { id: number }): ContentGone =>
  new ContentGone(`the content of message ${id} was removed`);

/** All of them, whatever one says; what stays is an orphan, swept at the next start. */
export async function unlinkAll(spool: Spool, names: string[]): Promise<void> {
  const drops = names.map((name) => spool.drop({ kind: "spool", name, sizeBytes: 0 }));
  for (const drop of await Promise.allSettled(drops)) if (drop.status === "rejected") throw drop.reason;
}
