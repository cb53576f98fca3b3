// TLSA records (RFC 6698 §2.1): what a mail host's certificate has to match under DANE. Pure; which of them SMTP
// can use (RFC 7672 §3.1) is decided here, the certificate is compared in delivery/dane.ts.

export interface TlsaRecord {
  /** 2: a trust anchor (DANE-TA), 3: the server's own certificate (DANE-EE); 0 and 1 are not for SMTP. */
  usage: number;
  /** 0: the whole certificate, 1: its public key. */
  selector: number;
  /** 0: the bytes themselves, 1: SHA-256 of them, 2: SHA-512. */
  matching: number;
  /** Lower-case hexadecimal. */
  data: string;
}

/** Hexadecimal digits of the data, by matching type; null: any. */
const digits: readonly (number | null)[] = [null, 64, 128];

/** From the data of a record in hexadecimal. One that is too short has no usage, and is unusable. */
export function readTlsa(hex: string): TlsaRecord {
  const byte = (at: number): number => Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16);
  return { usage: byte(0), selector: byte(1), matching: byte(2), data: hex.slice(6) };
}

/** A record that an SMTP client can compare a certificate with (RFC 7672 §3.1). */
export function isUsable({ usage, selector, matching, data }: TlsaRecord): boolean {
  const length = digits[matching];
  return (
    (usage === 2 || usage === 3) &&
    (selector === 0 || selector === 1) &&
    length !== undefined &&
    data.length > 0 &&
    (length === null || data.length === length)
  );
}

/**
 * Of usable records those that count: beside a digest no weaker one of the same usage and selector (RFC 7671 §9), so that a
 * certificate made to fit a broken digest does not pass while the zone has a better one. The bytes themselves always count.
 */
export function strongest(records: readonly TlsaRecord[]): TlsaRecord[] {
  const kindOf = ({ usage, selector }: TlsaRecord): string => `${usage} ${selector}`;
  const best = new Map<string, number>();
  for (const record of records)
    best.set(kindOf(record), Math.max(record.matching, best.get(kindOf(record)) ?? 0));
  return records.filter((record) => record.matching === 0 || record.matching === best.get(kindOf(record)));
}

/** Where the records of a server stand (RFC 6698 §3). */
export function tlsaName(host: string, port: number): string {
  return `_${port}._tcp.${host}`;
}
