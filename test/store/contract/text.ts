// Text that not every engine can store. Only the interface is used: the store is handed in.
import { describe, expect, test } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import type { ManualClock } from "../../support/clock.ts";
import { accept, mint, newEndpoint, newEvent, newMessage, newSuppression, settlementOf } from "../values.ts";
import { beforeAllOpened, type OpenStore } from "./opened.ts";

/** A NUL, a lone high surrogate, a lone low one, and a pair. */
const unfit = "a\0b\ud800c\udc00d\u{1f4e7}";
const stored = "a\ufffdb\ufffdc\ufffdd\u{1f4e7}";
const page = { limit: 10, cursor: null };

export function textContract(open: OpenStore): void {
  describe("text with NUL and lone surrogates, stored with U+FFFD in their place", () => {
    let store: Store;
    let clock: ManualClock;
    let account: number;
    beforeAllOpened(open, (opened) => ({ store, clock, account } = opened));

    test("of a message: its subject, tags, metadata, and what its header says", async () => {
      const message = newMessage({ accountKey: account, at: clock.now(), subject: unfit, tags: [unfit] });
      await accept(store, {
        ...message,
        message: {
          ...message.message,
          metadataJson: JSON.stringify({ [unfit]: unfit }),
          fromName: unfit,
          messageIdHeader: `<${unfit}@a.test>`,
        },
      });
      expect(await store.message(account, message.message.id)).toMatchObject({
        subject: stored,
        tags: [stored],
        metadata: { [stored]: stored },
      });
      const found = async (filter: Parameters<Store["listMessages"]>[1]) =>
        (await store.listMessages(account, filter, page)).rows.map(({ id }) => id);
      for (const text of [unfit, stored]) {
        expect(await found({ subject: text })).toEqual([message.message.id]);
        expect(await found({ tag: text })).toEqual([message.message.id]);
      }
    });

    test("of an attempt: the receiver's reply, in the recipient, the attempt, its dialogue and the event", async () => {
      const at = clock.now();
      const [job] = await accept(
        store,
        newMessage({ accountKey: account, at, lease: true, to: ["t@t.test"] }),
      );
      if (!job) throw new Error("no job");
      const settlement = settlementOf(job, at, { outcome: "bounced", smtpResponse: unfit });
      const { record } = settlement;
      await store.settle({
        ...settlement,
        record: record && { ...record, dialogue: [{ at_ms: 1, from: "them", text: unfit }] },
        event: { ...settlement.event, body: JSON.stringify({ data: { smtp_response: unfit } }) },
        suppression: newSuppression(account, "t@t.test", { description: unfit }),
      });
      expect((await store.message(account, job.message.id))?.recipients).toMatchObject([
        { smtpResponse: stored },
      ]);
      expect(await store.attempts(account, job.message.id)).toMatchObject([
        { smtpResponse: stored, dialogue: [{ text: stored }] },
      ]);
      const { rows } = await store.listEvents(account, { messageId: job.message.id }, page);
      expect(rows.map(({ body }) => JSON.parse(body))).toEqual([{ data: { smtp_response: stored } }]);
      expect(await store.suppression(account, "t@t.test", at)).toMatchObject({ description: stored });
    });

    test("of an event: as JSON escapes it, and no text that only looks like an escape", async () => {
      const id = mint("evt", clock.now());
      const lookalike = "\\u0000 and \\\\ud800";
      await store.recordEvent(
        newEvent({
          accountKey: account,
          receivedAt: clock.now(),
          id,
          body: `{"unfit":${JSON.stringify(unfit)},"upper":"\\uD83D\\uDCE7\\uDBFF","lookalike":${JSON.stringify(lookalike)}}`,
        }),
      );
      const { rows } = await store.listEvents(account, { eventId: id }, page);
      expect(rows.map(({ body }) => JSON.parse(body))).toEqual([
        { unfit: stored, upper: "\u{1f4e7}\ufffd", lookalike },
      ]);
    });

    test("of a webhook endpoint: the answer to its creation says what is stored", async () => {
      const made = await store.createEndpoint(newEndpoint(account, clock.now(), { description: unfit }));
      expect(made.description).toBe(stored);
      expect(await store.endpoint(account, made.id)).toEqual(made);
      const change = { description: unfit, updatedAt: clock.now() };
      expect(await store.updateEndpoint(account, made.id, change)).toMatchObject({ description: stored });
    });

    test("of the audit log: values, and names of members, also with an answer that is kept", async () => {
      const entry = {
        at: clock.now(),
        accountKey: account,
        actorKind: "operator" as const,
        actor: null,
        sourceIp: null,
        requestId: null,
        action: "webhooks.create",
        target: unfit,
        times: 1,
        detail: { [unfit]: [unfit] },
      };
      await store.recordAudit([entry]);
      await store.withIdempotency(
        null,
        async () => null,
        () => ({ status: 200, body: "", audit: entry }),
      );
      const { rows } = await store.listAudit({ target: stored }, page);
      expect(rows.map(({ detail }) => detail)).toEqual([{ [stored]: [stored] }, { [stored]: [stored] }]);
    });
  });
}
