import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { SMTPServer } from "smtp-server";
import { SMTPConnection } from "smtp-server/lib/smtp-connection.js";
import { SMTPStream } from "smtp-server/lib/smtp-stream.js";
import { expect, test } from "vitest";

/** What is overridden, and what the overrides lean on. Where one differs after an update: read what changed,
 * mend src/relay/smtp-connection.ts, then the digest. */
const methods: [string, object, string][] = [
  ["_countDataBytes", SMTPStream.prototype, "4b938ebe6c99"],
  ["_createParser", SMTPConnection.prototype, "15ca8c360137"],
  ["_endDataMode", SMTPStream.prototype, "7de0cf3d0671"],
  ["_feedDataStream", SMTPStream.prototype, "9d8b903f9a3a"],
  ["_getEnhancedStatusCode", SMTPConnection.prototype, "c0488b13c426"],
  ["_onClose", SMTPConnection.prototype, "097b8d221da5"],
  ["_onCommand", SMTPConnection.prototype, "41c8a1b7a32a"],
  ["_parseAddressCommand", SMTPConnection.prototype, "9f368803e4fd"],
  ["_whenWritable", SMTPConnection.prototype, "4335aceb04b5"],
  ["_write", SMTPStream.prototype, "a72635ce53e2"],
  ["close", SMTPConnection.prototype, "4b80aaabd134"],
  ["connect", SMTPServer.prototype, "9818ea13a1c3"],
  ["handler_DATA", SMTPConnection.prototype, "9eceecf35f56"],
  ["handler_STARTTLS", SMTPConnection.prototype, "54e8a7f36219"],
  ["init", SMTPConnection.prototype, "1265a7d7ca8f"],
  ["send", SMTPConnection.prototype, "c33568c0111a"],
  ["startDataMode", SMTPStream.prototype, "d007d5db8cb9"],
  ["upgrade", SMTPConnection.prototype, "6a3fa8a3ee41"],
];

test.each(methods)("the method %s of smtp-server is as in 3.21.6", (name, owner, digest) => {
  const source = String(Reflect.get(owner, name));
  expect(createHash("sha256").update(source).digest("hex").slice(0, 12)).toBe(digest);
});

test("smtp-server is pinned to one exact version", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(manifest).toMatchObject({ devDependencies: { "smtp-server": "3.21.6" } });
});
