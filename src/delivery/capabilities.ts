// What a server offers in its reply to EHLO (RFC 5321 §4.1.1.1): the extensions that are used.

/** What the server offered after its last EHLO (RFC 5321 §4.1.1.1). */
export interface Capabilities {
  pipelining: boolean;
  eightBit: boolean;
  smtpUtf8: boolean;
  /** The keyword was there; `limit` 0: no fixed maximum (RFC 1870 §4). */
  size: { limit: number } | null;
  startTls: boolean;
  auth: string[];
}

/** `lines`: of the reply, without the greeting. */
export function readCapabilities(lines: string[]): Capabilities {
  const offered = new Map(
    lines.map((line) => {
      const [keyword = "", ...parameters] = line.toUpperCase().split(/[ =]+/, 20);
      return [keyword, parameters] as const;
    }),
  );
  const size = offered.get("SIZE");
  const limit = Number(size?.[0] ?? 0);
  return {
    pipelining: offered.has("PIPELINING"),
    eightBit: offered.has("8BITMIME"),
    smtpUtf8: offered.has("SMTPUTF8"),
    size: size ? { limit: Number.isSafeInteger(limit) && limit > 0 ? limit : 0 } : null,
    startTls: offered.has("STARTTLS"),
    auth: offered.get("AUTH") ?? [],
  };
}
