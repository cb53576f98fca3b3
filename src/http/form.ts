// The small form of an unsubscribe: urlencoded or multipart (RFC 8058 §3.1), read as the text that it is.
import type { IncomingMessage, ServerResponse } from "node:http";
import { ClientGone } from "./body.ts";

const mostBytes = 4_096;

/** Null: it is longer than any such form. What arrives of it is not read. Rejects where the client goes away. */
export function readForm(req: IncomingMessage, res: ServerResponse): Promise<string | null> {
  if (Number(req.headers["content-length"] ?? 0) > mostBytes) return Promise.resolve(null);
  if (req.headers.expect !== undefined) res.writeContinue();
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    req.on("data", (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length <= mostBytes) return;
      req.pause();
      req.removeAllListeners("data");
      resolve(null);
    });
    req.on("end", () => resolve(Buffer.concat(chunks).toString("latin1")));
    req.on("error", reject);
    req.on("close", () => reject(new ClientGone()));
  });
}
