// Replies of an SMTP server (RFC 5321 §4.2).
export interface Reply {
  code: number;
  status: string | null;
  lines: string[];
  /** One line, safe UTF-8, at most 2,000 characters. */
  text: string;
}
export class ReplySyntaxError extends Error {
  constructor(detail: string) {
    super(detail);
    this.name = "ReplySyntaxError";
  }
}
export class ReplyParser {
  /** Takes bytes as they come; returns the replies that are complete. Throws ReplySyntaxError. */
  push(chunk: Buffer): Reply[] {
    throw new Error(String(chunk.length));
  }
}
