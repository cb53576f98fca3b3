// Which attachments are taken.
import type { Parsed } from "./address.ts";
export function readAttachment(a: { filename: string; content: string; content_type?: string | undefined }): Parsed<{ bytes: Buffer; contentType: string }> {
  throw new Error(a.filename);
}
export function executableName(filename: string): boolean {
  throw new Error(filename);
}
