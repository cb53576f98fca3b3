// The content of messages. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import { ContentGone } from "../../../src/store/store.ts";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, inChunks, newMessage, readAll } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

export function contentContract(open: OpenStore): void {
  describe("content", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test.each([
      ["small", 1000, "inline"],
      ["64 KB", 65_536, "inline"],
      ["a byte more", 65_537, "spool"],
      ["3 MB", 3_000_000, "spool"],
    ])("%s is read back byte for byte, from any offset", async (_label, size, kind) => {
      const bytes = Buffer.alloc(size, "0123456789abcdef");
      const content = await store.putContent(inChunks(bytes, 60_001));
      expect(content.kind).toBe(kind);
      const input = newMessage({ accountKey: account, at: clock.now(), content });
      await accept(store, input);
      const ref = (await store.message(account, input.message.id))?.content;
      if (!ref) throw new Error("no content");
      expect(ref.sizeBytes).toBe(size);
      expect((await readAll(store.openContent(ref))).equals(bytes)).toBe(true);
      expect((await readAll(store.openContent(ref, size - 10))).equals(bytes.subarray(size - 10))).toBe(true);
      expect(await readAll(store.openContent(ref, size))).toHaveLength(0);
    });

    test("content that was let go is gone", async () => {
      const content = await store.putContent(inChunks(Buffer.alloc(100_000), 10_000));
      if (content.kind !== "spool") throw new Error("not spooled");
      await store.dropContent(content);
      await store.dropContent(content);
      await expect(readAll(store.openContent(content))).rejects.toBeInstanceOf(ContentGone);
      await expect(
        readAll(store.openContent({ kind: "inline", id: 999_999_999, sizeBytes: 1 })),
      ).rejects.toBeInstanceOf(ContentGone);
    });

    test("what the sender's stream throws is thrown on, and nothing is kept of it", async () => {
      async function* broken(): AsyncIterable<Uint8Array> {
        yield new Uint8Array(200_000);
        throw new TypeError("the client went away");
      }
      await expect(store.putContent(broken())).rejects.toThrow(new TypeError("the client went away"));
    });
  });
}
