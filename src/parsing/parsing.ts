// Parses mail in threads, never on the event loop: the parts of a stored message for the API, and reports that come back
// by mail. There are two threads, so that reports do not wait behind content; each is started by its first call. The
// callers decide which mail is parsed and who may see it.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Notice } from "../mail/notice.ts";
import type { ReturnContext, Returned } from "../mail/returned.ts";
import type { OpenedContent } from "../model/content.ts";
import { contentJson } from "./content.ts";
import { createProcessorTime } from "./processor-time.ts";
import { createShares } from "./shares.ts";
import { createParsingWorker } from "./worker.ts";

export { BeyondLimit, createCallWorker, ParsingFailed, type CallWorker } from "./worker.ts";

export interface ContentAnswer {
  /** JSON text in pieces, made as they are taken. */
  chunks: AsyncIterable<Uint8Array>;
  /** Releases the thread and the account's share; to be called however the answer ends. */
  release(): void;
}

export interface ContentReading {
  accountKey: number;
  /** `close` is called once the thread reads no more. */
  open(): Promise<{ content: OpenedContent; close(): Promise<void> }>;
  /** Throws if the client has gone away. */
  goOn(): void;
}

export interface Parsing {
  /**
   * What GET /v1/messages/{id}/content shows. Throws BeyondLimit, ParsingFailed, what `open` and `goOn` throw, and a Refusal
   * where too many are read at once.
   */
  readContent(reading: ContentReading): Promise<ContentAnswer>;
  /** mail/returned.ts. Rejects with ParsingFailed: the mail is to be sent again later. */
  readReturned(mail: Uint8Array, came: ReturnContext): Promise<Returned>;
  /** mail/notice.ts. Rejects with ParsingFailed. */
  readNotice(mail: Uint8Array): Promise<Notice>;
  /** Ends the threads; what they had is rejected. */
  stop(): Promise<void>;
}

export function createParsing({ clock, log }: { clock: Clock; log: Log }): Parsing {
  let readings = 0;
  let open = 0;
  const content = createParsingWorker("content", { clock, log, inUse: () => open > 0 });
  const reports = createParsingWorker("reports", { clock, log });
  const shares = createShares(clock);
  const time = createProcessorTime(clock);
  /** Resolves once the thread does not read it any more; what an ended thread had is lost with it. */
  const dropped = async (reading: number): Promise<void> => {
    if (content.running()) await content.call({ kind: "drop", reading }).catch(() => undefined);
  };

  return {
    async readContent({ accountKey, open: openMail, goOn }) {
      const leave = await shares.enter(accountKey);
      const id = ++readings;
      open++;
      let close: (() => Promise<void>) | null = null;
      let released = false;
      const release = (): void => {
        if (released) return;
        released = true;
        open--;
        leave();
        void dropped(id)
          .then(close)
          .catch(() => undefined); // of a file that was only read
      };
      try {
        const opened = await openMail();
        ({ close } = opened);
        const turn = async (): Promise<void> => {
          goOn();
          await time.turn(accountKey);
          goOn();
        };
        const spent = (ms: number): void => time.spent(accountKey, ms);
        return {
          chunks: await contentJson({ worker: content, id, content: opened.content, turn, spent }),
          release,
        };
      } catch (error) {
        release();
        throw error;
      }
    },
    readReturned: (mail, came) => reports.call({ kind: "returned", mail, came }),
    readNotice: (mail) => reports.call({ kind: "notice", mail }),
    async stop() {
      await Promise.all([content.stop(), reports.stop()]);
    },
  };
}
