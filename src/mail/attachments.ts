// Which attachments are accepted: strict base64 (RFC 4648 §3, §4) with the line breaks of RFC 2045, a
// valid media type (RFC 2045 §5.1), and no name that the recipient's machine would execute.
// The name is checked as that machine decodes it, by its last effective extension.
import { detectMimeType } from "nodemailer/lib/mime-funcs";
import { decodeWords } from "./encoded-word.ts";

/** Extensions that Windows, macOS, Android or an office program runs or mounts at a double click. */
const executable = new Set(
  `ade adp apk app application appx appxbundle bat cab chm cmd com cpl diagcab diagcfg diagpkg dll dmg ex ex_ exe
  gadget hta img inf ins iso isp jar jnlp js jse lib lnk mde mjs msc msi msix msixbundle msp mst nsh pif ps1 psm1 reg
  scf scr sct shb sys vb vbe vbs vhd vhdx vxd wsc wsf wsh xll`.split(/\s+/),
);

export interface AttachmentProblem {
  field: "filename" | "content" | "content_type";
  issue: string;
}

/** Decodes the content and names its type, or says all that is wrong with it; an issue reads behind its field's name. */
export function readAttachment(a: {
  filename: string;
  content: string;
  content_type?: string | undefined;
}):
  { ok: true; value: { bytes: Buffer; contentType: string } } | { ok: false; problems: AttachmentProblem[] } {
  const problems: AttachmentProblem[] = [];
  if (executableName(a.filename))
    problems.push({ field: "filename", issue: "has an executable extension, which is refused" });
  const contentType =
    a.content_type === undefined ? detectMimeType(a.filename) : readContentType(a.content_type);
  if (contentType === null)
    problems.push({ field: "content_type", issue: "is not of the form type/subtype" });
  const bytes = strictBase64(a.content);
  if (bytes === null) problems.push({ field: "content", issue: "is not valid base64" });
  if (problems.length > 0 || contentType === null || bytes === null) return { ok: false, problems };
  return { ok: true, value: { bytes, contentType } };
}

const sliceOctets = 3 * 16_384;

/** Null unless the text, its line breaks aside, is exactly what encoding the bytes gives. */
function strictBase64(text: string): Buffer | null {
  const bare = text.includes("\n") ? text.replace(/\r?\n/g, "") : text;
  if (bare.length % 4 !== 0) return null;
  const bytes = Buffer.from(bare, "base64");
  // Node skips what it does not know; encoding again shows it, a slice at a time.
  if (Math.ceil(bytes.length / 3) * 4 !== bare.length) return null;
  for (let start = 0; start < bytes.length; start += sliceOctets) {
    const again = bytes.toString("base64", start, Math.min(start + sliceOctets, bytes.length));
    if (!bare.startsWith(again, (start / 3) * 4)) return null;
  }
  return bytes;
}

const token = "[!#$%&'*+\\-.0-9A-Z^_`a-z{|}~]{1,127}";
const mediaType = new RegExp(`^(${token})/(${token})`);
const parameter = new RegExp(
  `^[ \\t]*;[ \\t]*(${token})=(?:(${token})|"((?:[ !#-[\\]-~]|\\\\[ -~]){0,255})")`,
);
const maxTypeLength = 500;

/**
 * A media type with its parameters (RFC 2045 §5.1) in one spelling; null if it is none. multipart is
 * none for an attachment: its parts would have no boundary.
 */
export function readContentType(text: string): string | null {
  if (text.length > maxTypeLength) return null;
  const type = mediaType.exec(text);
  if (type === null) return null;
  let out = type[0].toLowerCase();
  if (out.startsWith("multipart/")) return null;
  let rest = text.slice(type[0].length);
  while (rest.trim() !== "") {
    const next = parameter.exec(rest);
    if (next?.[1] === undefined) return /^[ \t]*;[ \t]*$/.test(rest) ? out : null;
    out += `; ${next[1].toLowerCase()}=${next[2] ?? `"${next[3] ?? ""}"`}`;
    rest = rest.slice(next[0].length);
  }
  return /[\r\n]/.test(rest) ? null : out;
}

const bidi = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const trimmedAtEnd = /[\s.\p{C}\p{Default_Ignorable_Code_Point}]/u;
const ignorable = /[\p{C}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Whether the last effective extension is executable: encoded-words and %XX decoded, NFKC, any case,
 * dots, spaces and invisible characters at the end dropped. An extension that contains a bidi control or
 * cannot be decoded hides something and counts as executable; `report.exe.pdf` does not.
 */
export function executableName(filename: string): boolean {
  const name = Array.from(percentDecoded(decodeWords(filename)).toWellFormed().normalize("NFKC"));
  while (name.length > 0 && trimmedAtEnd.test(name.at(-1) ?? "")) name.pop();
  const base = name.join("").replace(/^.*[/\\]/s, "");
  const dot = base.lastIndexOf(".");
  if (dot < 0) return false;
  const extension = base.slice(dot + 1);
  if (bidi.test(extension) || extension.includes("\ufffd")) return true;
  return executable.has(extension.replace(ignorable, "").trim().toLowerCase());
}

function percentDecoded(name: string): string {
  return name.replace(/(?:%[0-9A-Fa-f]{2})+/g, (escapes) =>
    Buffer.from(escapes.replaceAll("%", ""), "hex").toString("utf8"),
  );
}
