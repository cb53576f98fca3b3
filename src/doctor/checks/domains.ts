// Checks of sender domains, by what their last look-up found (domains/verify-records.ts), and of what Gmail and Yahoo ask of
// bulk senders since 2024.
import type { DnsRecord, RecordPurpose } from "../../model/dns-record.ts";
import type { SenderDomain } from "../../model/domain.ts";
import { fail, listed, ok, unknown, warn, type Check, type Finding } from "../check.ts";

const recordOf = ({ name, issue }: DnsRecord): string => `${name}${issue === null ? "" : ` ${issue}`}`;

function mendOf(domains: readonly SenderDomain[]): string {
  const name = domains[0]?.name ?? "DOMAIN";
  return `svc domains records ${name}, publish what it shows, then svc domains verify ${name}`;
}

/** Records of one purpose, of every domain that is not suspended. */
function recordsCheck(
  purpose: RecordPurpose,
  id: string,
  about: string,
  why: string,
  failing: "fail" | "warn",
): Check {
  return {
    id,
    about,
    async run(world) {
      const domains = (await world.domains()).filter(({ status }) => status !== "suspended");
      const concerned = domains.flatMap((domain) =>
        domain.records
          .filter((record) => record.purpose === purpose && (record.required || purpose !== "dkim"))
          .map((record) => ({ domain, record })),
      );
      if (concerned.length === 0)
        return ok(domains.length === 0 ? "there is no domain yet" : "no domain has any");
      const wrong = concerned.filter(
        ({ record }) => record.status === "missing" || record.status === "mismatch",
      );
      if (wrong.length > 0) {
        const saw = listed(wrong.map(({ record }) => recordOf(record)));
        return { status: failing, saw, why, mend: mendOf(wrong.map(({ domain }) => domain)) };
      }
      const open = concerned.filter(({ record }) => record.status !== "ok");
      if (open.length > 0)
        return unknown(
          `not looked up, or the DNS did not answer: ${listed(open.map(({ record }) => record.name))}`,
          `svc domains verify ${open[0]?.domain.name ?? ""}`,
        );
      return ok(listed(concerned.map(({ record }) => record.name)));
    },
  };
}

/** Gmail refuses from 0.3 % on, and asks for less than 0.1 %. */
const complaintsRefused = 0.003;
const complaintsHigh = 0.001;
const hardBouncesHigh = 0.05;
/** Fewer say nothing. */
const leastMessages = 500;

export const domainChecks: readonly Check[] = [
  {
    id: "domains",
    about: "Every sender domain is verified, so that mail from it is taken.",
    async run(world) {
      const domains = await world.domains();
      if (domains.length === 0)
        return warn(
          "there is no sender domain",
          "mail is taken from verified domains alone",
          "svc domains add DOMAIN",
        );
      const failing = domains.filter(({ status }) => status === "failed" || status === "degraded");
      if (failing.length > 0)
        return fail(
          listed(failing.map(({ name, status }) => `${name} is ${status}`)),
          "mail from a failed domain is refused; a degraded one fails after 72 hours",
          mendOf(failing),
        );
      const pending = domains.filter(({ status }) => status === "pending");
      if (pending.length > 0)
        return warn(
          listed(pending.map(({ name }) => `${name} is pending`)),
          "mail from it is refused until its records are seen",
          mendOf(pending),
        );
      return ok(listed(domains.map(({ name, status }) => `${name} is ${status}`)));
    },
  },
  recordsCheck(
    "dkim",
    "dkim",
    "The DKIM keys in the DNS are those that mail is signed with.",
    "receivers find the signatures wrong, and DMARC fails",
    "fail",
  ),
  recordsCheck(
    "spf",
    "spf",
    "There is one SPF record at the return path, and it passes for every sending address.",
    "receivers refuse the mail, or put it into the spam folder",
    "fail",
  ),
  recordsCheck(
    "return_path",
    "return-path",
    "The MX of the return path leads to this server, so that bounces come back.",
    "bounces that come later are lost, and dead addresses are written to again",
    "fail",
  ),
  recordsCheck(
    "dmarc",
    "dmarc",
    "Each domain has a DMARC record, and DKIM or SPF is aligned with it.",
    "Gmail and Yahoo refuse bulk mail of domains without DMARC",
    "warn",
  ),
  recordsCheck(
    "tracking",
    "tracking-names",
    "The names of tracked links lead to this server.",
    "tracked links use the server's own name meanwhile",
    "warn",
  ),
  {
    id: "bulk-senders",
    about:
      "What Gmail and Yahoo ask of bulk senders: signed mail over TLS, complaints below 0.3 % (better 0.1 %), few unknown addresses.",
    async run({ outbound, rates }) {
      const wrong: string[] = [];
      if (!outbound.sign && !outbound.smartHost) wrong.push("outbound.sign is false");
      const all = (await rates()).filter(({ rates: { delivered } }) => delivered >= leastMessages);
      const share = (account: string, count: number, of: number, what: string): string =>
        `${account}: ${((count / of) * 100).toFixed(2)} % ${what} in seven days`;
      const complained = all.filter(({ rates: r }) => r.complained / r.delivered >= complaintsHigh);
      const bounced = all.filter(
        ({ rates: r }) => r.bouncedHard / (r.delivered + r.bouncedHard) >= hardBouncesHigh,
      );
      wrong.push(
        ...complained.map(({ account, rates: r }) => share(account, r.complained, r.delivered, "complained")),
        ...bounced.map(({ account, rates: r }) =>
          share(account, r.bouncedHard, r.delivered + r.bouncedHard, "bounced hard"),
        ),
      );
      if (wrong.length === 0) return ok("within their rules");
      const refused = complained.some(({ rates: r }) => r.complained / r.delivered >= complaintsRefused);
      const finding: Finding = {
        status: refused ? "fail" : "warn",
        saw: listed(wrong),
        why: "providers put such mail into the spam folder, then refuse it",
        mend: "write to those alone who asked for it, offer one-click unsubscribe, and see svc stats bounces",
      };
      return finding;
    },
  },
];
