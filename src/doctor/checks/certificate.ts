// The check of the certificates, the gravest fault first: the listeners' own is missing, clients refuse it, it is not renewed;
// then those of tracking names.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { dayMs, isoTime } from "../../clock.ts";
import {
  fail,
  listed,
  ok,
  warn,
  within,
  type Check,
  type Finding,
  type ServedCertificate,
  type World,
} from "../check.ts";

const renewMs = 14 * dayMs;
/** Orders that fail are repeated within this time. */
const overdueMs = 2 * dayMs;

const install = "svc cert install --cert FILE --key FILE";
const renew = "see that the name leads to this server and that port 80 is open, then svc cert renew";

/** The listeners' own certificate. */
interface Shown {
  leaf: X509Certificate;
  ends: number;
  isAcme: boolean;
  renewAt: number | null;
  /** That the last attempt to replace it failed, to be said behind what was seen; empty: it did not. */
  failure: string;
  now: number;
}

export const certificateCheck: Check = {
  id: "certificate",
  about: "The listeners' certificate is of a known authority, names the host, and is renewed in time.",
  async run(world) {
    const { certificate, tlsMode, now } = world;
    if (tlsMode === "off") return ok("TLS is off: a proxy has the certificate");
    const all = await world.certificates();
    const own = all.find(({ isHost }) => isHost);
    if (certificate === null) return findingOfNone(own?.error ?? "", tlsMode);
    const leaf = new X509Certificate(certificate);
    const shown: Shown = {
      leaf,
      ends: leaf.validToDate.getTime(),
      isAcme: tlsMode === "acme",
      renewAt: own?.renewAt ?? null,
      failure: own?.error ? `; the last attempt failed: ${own.error}` : "",
      now,
    };
    return (
      whyRefused(shown, world) ??
      whyNotRenewed(shown) ??
      trackingNamesWithout(all, shown) ??
      ok(
        `until ${isoTime(shown.ends)}${shown.renewAt === null ? "" : `, to be renewed at ${isoTime(shown.renewAt)}`}`,
      )
    );
  },
};

function findingOfNone(error: string, tlsMode: World["tlsMode"]): Finding {
  if (error === "") return ok("there is none yet: a start makes one that is self-signed");
  return tlsMode === "files"
    ? fail(error, "the service does not start", "put right what tls.cert and tls.key name")
    : fail(error, "a start serves a self-signed certificate in its place", install);
}

function whyRefused(
  { leaf, ends, isAcme, failure, now }: Shown,
  { hostname, publicUrl, behindProxy }: World,
): Finding | null {
  if (ends <= now)
    return fail(
      `it expired at ${isoTime(ends)}${failure}`,
      "clients refuse the connection",
      isAcme ? renew : `renew it, then ${install}`,
    );
  const names = behindProxy ? [hostname] : [hostname, hostOf(publicUrl)]; // the proxy has its own for publicUrl
  const unnamed = [...new Set(names)].filter(
    (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) === undefined,
  );
  if (unnamed.length > 0)
    return fail(
      `it does not name ${listed(unnamed)}${failure}`,
      "clients refuse the connection",
      isAcme ? renew : `get a certificate for these names, then ${install}`,
    );
  if (leaf.subject === leaf.issuer)
    return warn(
      `it is self-signed, until ${isoTime(ends)}${failure}`,
      "clients that verify it refuse the connection",
      isAcme ? renew : `svc config set tls.mode acme, then restart; or ${install}`,
    );
  return null;
}

function whyNotRenewed({ ends, isAcme, renewAt, failure, now }: Shown): Finding | null {
  if (ends - now < renewMs && renewAt === null)
    return warn(
      `it expires in ${within(ends - now)}${failure}`,
      "clients refuse the connection then",
      isAcme ? renew : `renew it, then ${install}`,
    );
  if (renewAt !== null && renewAt < now - overdueMs)
    return warn(
      `its renewal has been due since ${isoTime(renewAt)}; it expires in ${within(ends - now)}${failure}`,
      "clients refuse the connection then",
      renew,
    );
  if (failure !== "")
    return warn(
      `until ${isoTime(ends)}${failure}`,
      "clients refuse the connection once it has expired",
      isAcme ? renew : "put right what tls.cert and tls.key name; it is noticed within a minute",
    );
  return null;
}

function trackingNamesWithout(all: readonly ServedCertificate[], { ends }: Shown): Finding | null {
  const failed = all.filter(({ isHost, isGivenUp, error }) => !isHost && !isGivenUp && error !== null);
  const [first] = failed;
  if (first === undefined) return null;
  return warn(
    `until ${isoTime(ends)}; none from the ACME server for ${listed(failed.map(({ name }) => name))}: ${first.error ?? ""}`,
    "links of tracked mail lead to a certificate that browsers refuse",
    `see that the names lead to this server, then svc cert renew ${first.name}`,
  );
}

/** An IPv6 address without the brackets of a URL. */
const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");
