// Sends each recipient domain that asks for it the TLS report of a day that is over (RFC 8460), by mail or HTTPS, once: a
// domain's counts go with its report, or where it wants none. Mail is a message of the account `operations`, signed; where
// operations.from has no verified domain it could not be, and is not sent (RFC 8460 §3). A report that cannot be handed
// over is tried again each hour for two days. Receivers that are slow delay nobody else's reports.
import { dayMs, type Clock } from "../clock.ts";
import type { Resolver } from "../dns/resolver.ts";
import { createFairSlots } from "../fairness.ts";
import type { Https } from "../https.ts";
import type { Log } from "../log.ts";
import type { Notices } from "../notifications/notices.ts";
import type { HasJobs } from "../service.ts";
import type { Store, TlsResultDay } from "../store/store.ts";
import { reportAddresses, tlsReportName, type ReportTo } from "./record.ts";
import { tlsReport, type TlsReport } from "./report.ts";

const owner = "tls-reports";
/** Domains of one look at the store, all of which may wait for their receivers at once. */
const pageRows = 200;
/** Reports that are made at once; one whose receiver is slow gives its place to the next. */
const slots = 8;
const patienceMs = 1_000;
/** Reports to one address in one run: domains that a customer made up could flood a stranger's mailbox. */
const mostToOne = 100;
const givenUpDays = 3;

export interface TlsReports extends HasJobs {
  /** Reports of the days that are over. */
  run(): Promise<void>;
  /** Ends the run under way; resolves once what it has handed over is noted. */
  stop(): Promise<void>;
}

export interface TlsReportsDeps {
  store: Pick<Store, "tlsResultDays" | "tlsResults" | "removeTlsResults">;
  resolver: Pick<Resolver, "txt">;
  https: Https;
  notices: Pick<Notices, "report">;
  hostname: string;
  /** operations.email. */
  contact: string | null;
  clock: Clock;
  log: Log;
}

export function createTlsReports(deps: TlsReportsDeps): TlsReports {
  const { store, resolver, https, notices, hostname, clock, log } = deps;
  const places = createFairSlots({ slots, patienceMs, lingering: pageRows, clock });
  const contact = deps.contact ?? `postmaster@${hostname}`;
  const stopping = new AbortController();

  /** False: it could not be handed over, and may be tried again. */
  const send = async (to: ReportTo, { domain }: TlsResultDay, report: TlsReport): Promise<boolean> => {
    if (to.kind === "mailto") return notices.report(to.address, mailOf(domain, hostname, report));
    const { url } = to;
    try {
      const { status } = await https({
        method: "POST",
        host: url.hostname,
        port: url.port === "" ? 443 : Number(url.port),
        path: url.pathname + url.search,
        headers: { "content-type": "application/tlsrpt+gzip" },
        body: report.gzip,
        owner,
        signal: stopping.signal,
      });
      if (status >= 200 && status < 300) return true;
      throw new Error(`the answer was ${status}`);
    } catch (error) {
      log.info({ domain, url: url.href, why: String(error) }, "TLS report not taken");
      return false;
    }
  };

  /** True: the day's counts of the domain are done with. */
  const reportOn = async (of: TlsResultDay, sent: Map<string, number>): Promise<boolean> => {
    const answer = await resolver.txt(tlsReportName(of.domain), owner);
    if (answer.kind === "failed") return false;
    const addresses = answer.kind === "found" ? reportAddresses(answer.records) : [];
    if (addresses.length === 0) return true;
    const report = await tlsReport(of, await store.tlsResults(of), { hostname, contact });
    const taken = addresses.map(async (to): Promise<boolean> => {
      const key = to.kind === "mailto" ? to.address.email.toLowerCase() : to.url.host;
      const before = sent.get(key) ?? 0;
      sent.set(key, before + 1);
      if (before === mostToOne)
        log.warn({ to: key }, "TLS reports to one address are not sent: too many domains");
      return before >= mostToOne || send(to, of, report);
    });
    return (await Promise.all(taken)).includes(true);
  };

  /** In its turn. Rejects for what the store cannot give. */
  const inTurn = (of: TlsResultDay, sent: Map<string, number>): Promise<boolean> =>
    new Promise((resolve, reject) => {
      places.enter(of.domain, (leave) => {
        const reported = stopping.signal.aborted ? Promise.resolve(false) : reportOn(of, sent);
        reported.then(resolve, reject).finally(leave);
      });
    });

  const runOnce = async (): Promise<void> => {
    const today = Math.floor(clock.now() / dayMs);
    const sent = new Map<string, number>();
    let after: TlsResultDay | null = null;
    for (;;) {
      const page: TlsResultDay[] = await store.tlsResultDays(today, after, pageRows);
      const done: TlsResultDay[] = [];
      const report = async (of: TlsResultDay): Promise<void> => {
        const taken = await inTurn(of, sent);
        if (taken || (today - of.day >= givenUpDays && !stopping.signal.aborted)) done.push(of);
      };
      await Promise.all(page.map(report));
      if (done.length > 0) await store.removeTlsResults(done);
      after = page.at(-1) ?? null;
      if (page.length < pageRows || stopping.signal.aborted) return;
    }
  };

  let running = Promise.resolve();
  const run = (): Promise<void> => (running = runOnce());

  return {
    run,
    async stop() {
      stopping.abort();
      await running.catch(() => undefined); // thrown to the job
    },
    jobs: [{ name: "send-tls-reports", cron: "23 * * * *", run }],
  };
}

/** RFC 8460 §5.3. */
function mailOf(domain: string, hostname: string, { id, filename, gzip }: TlsReport) {
  return {
    subject: `Report Domain: ${domain} Submitter: ${hostname} Report-ID: <${id}>`,
    text: `This is the daily report of ${hostname} on the TLS of its mail to ${domain} (RFC 8460).\n`,
    headers: [
      ["TLS-Report-Domain", domain],
      ["TLS-Report-Submitter", hostname],
    ] as [string, string][],
    reportType: "tlsrpt",
    file: { filename, contentType: "application/tlsrpt+gzip", bytes: gzip },
  };
}
