// What a receiver answered, as text that may be kept and shown: at most 4 KB, whatever its bytes were. It is a
// stranger's: what is not UTF-8, and characters that steer a terminal or hide text, are replaced.

export const longestText = 4096;

/** `bytes`: the start of the answer. */
export function answerText(bytes: Uint8Array): string {
  const text = whole(bytes.subarray(0, longestText)).replace(/[^\P{C}\t\n\r]/gu, "\ufffd");
  const encoded = Buffer.from(text, "utf8"); // replacements are longer than what they replace
  return encoded.length <= longestText ? text : whole(encoded.subarray(0, longestText));
}

/** The characters that are there whole: a cut may go through one. */
function whole(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes, { stream: true });
}
