// The kinds of value in svc.yaml. Each is a zod type that takes what YAML or an
// environment variable gives (text, number, truth value) and whose message says what would be right.
import { isIP } from "node:net";
import { isAbsolute } from "node:path";
import { domainToASCII } from "node:url";
import { z } from "zod";
import { parseAddress } from "../mail/address.ts";
import { defaultAccount } from "../model/account.ts";
import { bucketNames } from "../model/limits.ts";
import { codeRangePattern, type NamedZone } from "../model/listing.ts";
import { listenerTlsModes } from "../model/tls.ts";
import { parseSpan, spanPattern } from "./span.ts";

export type ListenAddress = { host: string; port: number } | { path: string };

/** The type of an option. `unit` is the unit of its value, which ends its name in the configuration: `retryMs`. */
export type Kind<T, Unit extends string = ""> = z.ZodType<T> & { unit: Unit };

function inUnit<T, Unit extends string>(type: z.ZodType<T>, unit: Unit): Kind<T, Unit> {
  return Object.assign(type, { unit });
}

/** What of JSON Schema says which values a kind takes; the parser decides. */
type Shape = Readonly<Record<string, unknown>>;

/** A type by its parser: `undefined` means "not that", and `expected` is what the operator reads. */
function kind<T>(expected: string, shape: Shape, parse: (raw: unknown) => T | undefined): Kind<T> {
  const type = z.unknown().transform((raw, context) => {
    const value = parse(raw);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: expected });
    return z.NEVER;
  });
  return inUnit(type.meta({ ...shape, description: expected }) as z.ZodType<T>, "");
}

function textKind<T>(expected: string, parse: (text: string) => T | undefined, shape: Shape = {}): Kind<T> {
  return kind(expected, { type: "string", ...shape }, (raw) =>
    typeof raw === "string" && raw.length <= 4096 ? parse(raw) : undefined,
  );
}

export function list<T, Unit extends string>(
  item: z.ZodType<T> & { unit: Unit },
  bounds: { min?: number; max: number },
): Kind<T[], Unit> {
  const range = `${bounds.min ?? 0} to ${bounds.max} entries`;
  const array = z
    .array(item)
    .min(bounds.min ?? 0, range)
    .max(bounds.max, range);
  return inUnit(
    z.preprocess((raw) => (Array.isArray(raw) ? raw : [raw]), array),
    item.unit,
  );
}

export function oneOf<const T extends string>(...words: T[]): Kind<T> {
  return textKind(`one of ${words.join(", ")}`, (text) => words.find((word) => word === text), {
    enum: words,
  });
}

export const tlsMode = oneOf(...listenerTlsModes);

const hourAndMinute = /^(?:[01]\d|2[0-3]):[0-5]\d$/;
export const timeOfDay = textKind(
  "a time of day such as 03:30",
  (text) => (hourAndMinute.test(text) ? text : undefined),
  { pattern: hourAndMinute.source },
);

const spanShape = { type: "string", pattern: spanPattern.source };

/** If `least` is zero, a bare 0 is accepted too. */
export function span(least: string, most: string): Kind<number, "Ms"> {
  const [min, max] = [parseSpan(least) ?? 0, parseSpan(most) ?? Infinity];
  const shape = min === 0 ? { anyOf: [spanShape, { const: 0 }] } : spanShape;
  const type = kind(`a span from ${least} to ${most}, such as 30s, 5m, 48h or 3d`, shape, (raw) => {
    if (min === 0 && (raw === 0 || raw === "0")) return 0;
    const ms = typeof raw === "string" ? parseSpan(raw) : null;
    return ms !== null && ms >= min && ms <= max ? ms : undefined;
  });
  return inUnit(type, "Ms");
}

export function whole(min: number, max: number): Kind<number> {
  const shape = { type: "integer", minimum: min, maximum: max };
  return kind(`a whole number from ${min} to ${max}`, shape, (raw) => {
    const value = typeof raw === "string" && /^\d{1,15}$/.test(raw) ? Number(raw) : raw;
    return typeof value === "number" && Number.isInteger(value) && value >= min && value <= max
      ? value
      : undefined;
  });
}

export const truth = kind("true or false", { type: "boolean" }, (raw) => {
  if (typeof raw === "boolean") return raw;
  return raw === "true" ? true : raw === "false" ? false : undefined;
});

const share = /^(\d{1,3}(?:\.\d{1,3})?)%$/;
/** A share from 0 to 1. */
export const percent: Kind<number, "Share"> = inUnit(
  textKind(
    "a share of 0% to 100%, such as 5%",
    (text) => {
      const match = share.exec(text);
      const value = Number(match?.[1]) / 100;
      return match && value <= 1 ? value : undefined;
    },
    { pattern: share.source },
  ),
  "Share",
);

/** Lower case A-label of a full host name (RFC 1123 §2.1, RFC 5890); with at least one dot. */
export function readHostName(text: string): string | undefined {
  const ascii = /[\s\p{Cc}/:@?#\\[\]%]/u.test(text) ? "" : domainToASCII(text).toLowerCase();
  const label = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
  const labels = ascii.split(".");
  return ascii.length <= 253 &&
    labels.length > 1 &&
    labels.every((part) => label.test(part)) &&
    isIP(ascii) === 0
    ? ascii
    : undefined;
}

export const hostName = textKind("the full host name, such as mail.acme.example", readHostName);
/** A host name, a single label or an address: what can be dialled. */
export const host = textKind("a host name or an IP address", (text) =>
  isIP(text) !== 0 || /^[a-z0-9-]{1,63}$/i.test(text) ? text : readHostName(text),
);
export const ipAddress = textKind("an IP address", (text) => (isIP(text) !== 0 ? text : undefined));
export const path = textKind("an absolute path", (text) =>
  isAbsolute(text) && !text.includes("\0") ? text : undefined,
);
export const user = textKind("a login name", (text) => (/^\P{Cc}{1,255}$/u.test(text) ? text : undefined));
export const secret = textKind("one line of text", (text) =>
  /^\P{Cc}{1,1024}$/u.test(text) ? text : undefined,
);
export const accountName = textKind("the name of an account", (text) =>
  /^[a-z0-9][a-z0-9_-]{0,63}$/.test(text) ? text : undefined,
);

/** `10.0.0.0/8`, `fd00::/8`; a bare address is a network of one. */
export const network = textKind("a network such as 10.0.0.0/8 or fd00::/8", (text) => {
  const [address = "", bits, ...more] = text.split("/");
  const version = isIP(address);
  if (version === 0 || more.length > 0 || address.includes("%")) return undefined;
  const most = version === 4 ? 32 : 128;
  if (bits === undefined) return `${address}/${most}`;
  return /^\d{1,3}$/.test(bits) && Number(bits) <= most ? text : undefined;
});

/** Port 0 asks the system for any free one. */
export const listenAddress: Kind<ListenAddress> = textKind(
  "an address and a port, such as [::]:443 or 127.0.0.1:8443, or unix:/run/svc/http.sock",
  (text) => {
    if (text.startsWith("unix:")) {
      const file = text.slice(5);
      return isAbsolute(file) && Buffer.byteLength(file) <= longestSocketPath ? { path: file } : undefined;
    }
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text);
    const address = match?.[1] ?? match?.[2] ?? "";
    const port = Number(match?.[3]);
    return isIP(address) === (match?.[1] === undefined ? 4 : 6) && port <= 65_535
      ? { host: address, port }
      : undefined;
  },
);

/** `sun_path` has 108 bytes, the last of them zero (unix(7)). */
export const longestSocketPath = 107;
export const socketPath = textKind(`an absolute path of at most ${longestSocketPath} bytes`, (text) =>
  isAbsolute(text) && Buffer.byteLength(text) <= longestSocketPath ? text : undefined,
);

export const dnsServer = textKind(
  "an IP address, with a port if need be: 127.0.0.1:5353, [::1]:5353",
  (text) => {
    if (isIP(text) !== 0) return text;
    const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text);
    const port = Number(match?.[3]);
    return isIP(match?.[1] ?? match?.[2] ?? "") !== 0 && port >= 1 && port <= 65_535 ? text : undefined;
  },
);

/** An https origin without a trailing slash. */
export const baseUrl = textKind(
  "an https address without a path, such as https://mail.acme.example",
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : null;
    const origin =
      url?.protocol === "https:" &&
      url.pathname === "/" &&
      url.search === "" &&
      url.hash === "" &&
      url.username === "";
    return url && origin ? url.origin : undefined;
  },
);

/** With a host name: certificates are of names. */
export const httpsUrl = textKind("an https address, such as https://acme.example/directory", (text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url?.protocol === "https:" && url.username === "" && isIP(url.hostname.replace(/^\[|\]$/g, "")) === 0
    ? url.href
    : undefined;
});

export const mailAddress = textKind("an email address", (text) => {
  const parsed = parseAddress(text);
  return parsed.ok ? parsed.value.email : undefined;
});

const trustedPeer = z.strictObject(
  { network, account: accountName.default(defaultAccount) },
  `a network and an account: {network: 10.0.0.0/8, account: ${defaultAccount}}`,
);
export const trustedPeers: Kind<{ network: string; account: string }[]> = list(inUnit(trustedPeer, ""), {
  max: 100,
});

const rate = z
  .strictObject(
    { burst: whole(1, 1_000_000), per_second: whole(1, 1_000_000) },
    "a burst and a rate: {burst: 200, per_second: 200}",
  )
  .transform(({ burst, per_second }) => ({ burst, perSecond: per_second }));
export const rates: Kind<Record<string, { burst: number; perSecond: number }>> = inUnit(
  z.partialRecord(
    z.enum(bucketNames),
    rate,
    `rates such as {messages-write: {burst: 200, per_second: 200}}, of the buckets ${bucketNames.join(", ")}`,
  ),
  "",
);

const codeRange = textKind("a code such as 127.0.0.2, or a range 127.0.0.2-127.0.0.9", (text) =>
  codeRangePattern.test(text) ? text : undefined,
);
const httpUrl = textKind("an http or https address", (text) =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined,
);
const zoneName = textKind("a name of 1 to 100 characters", (text) =>
  /^\P{Cc}{1,100}$/u.test(text) ? text : undefined,
);
const namedZoneFields = z.strictObject({
  zone: hostName,
  name: zoneName.optional(),
  codes: list(codeRange, { min: 1, max: 64 }).optional(),
  removal_url: httpUrl.optional(),
});
const zoneWords = "a zone such as zen.spamhaus.org, or {zone, name, codes, removal_url}";
const namedZone = z.union(
  [
    hostName.transform((zone): NamedZone => ({ zone, name: null, codes: null, removalUrl: null })),
    namedZoneFields.transform(
      ({ zone, name = null, codes = null, removal_url: removalUrl = null }): NamedZone => ({
        zone,
        name,
        codes,
        removalUrl,
      }),
    ),
  ],
  zoneWords,
);
/** Blocklists; what is left out of one is as the program knows it. */
export const zones: Kind<NamedZone[]> = list(inUnit(namedZone, ""), { max: 50 });

const guardShares = "false, or two shares such as {hard_bounce: 10%, complaint: 0.3%}";
/** Shares past which an account is paused; false: none is. */
export const guard: Kind<{ hardBounceShare: number; complaintShare: number } | null> = inUnit(
  z.union(
    [
      z.literal(false).transform(() => null),
      z
        .strictObject({ hard_bounce: percent.optional(), complaint: percent.optional() }, guardShares)
        .transform(({ hard_bounce: hardBounceShare = 0.1, complaint: complaintShare = 0.003 }) => ({
          hardBounceShare,
          complaintShare,
        })),
    ],
    guardShares,
  ),
  "",
);
