// Parses mail in threads, never on the event loop: the parts of a stored message for the API, and reports that come back
// by mail. There are two threads, so that reports do not wait behind content; each is started by its first call. The
// callers decide which mail is parsed and who may see it.
import type { Clock } from "../clock.ts";
import type { Log } from "../log.ts";
import type { Notice } from "../mail/notice.ts";
import type { ReturnContext, Returned } from "../mail/returned.ts";
import { contentJson, type OpenMail } from "./content.ts";
import { createShares } from "./shares.ts";
import { createParsingWorker } from "./worker.ts";

export { BeyondLimit, createCallWorker, ParsingFailed, type CallWorker } from "./worker.ts";

export interface ContentAnswer {
  /** JSON text in pieces, made as they are taken. */
  chunks: AsyncIterable<Uint8Array>;
  /** Releases the thread and the account's share; to be called however the answer ends. */
  release(): void;
}

export interface Parsing {
  /**
   * What GET /v1/messages/{id}/content shows. Throws BeyondLimit, ParsingFailed, what `open` throws, and a Refusal where too
   * many are read at once.
   */
  readContent(reading: { accountKey: number; open: OpenMail; goOn(): void }): Promise<ContentAnswer>;
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

  return {
    async readContent({ accountKey, open: openMail, goOn }) {
      const leave = await shares.enter(accountKey);
      const id = ++readings;
      open++;
      let released = false;
      const release = (): void => {
        if (released) return;
        released = true;
        open--;
        leave();
        // What an ended thread had is lost with it.
        if (content.running()) content.call({ kind: "drop", reading: id }).catch(() => undefined);
      };
      try {
        return { chunks: await contentJson({ worker: content, id, open: openMail, goOn }), release };
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
