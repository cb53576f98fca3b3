// Checks of the service itself: certificate, listeners, queue, webhooks, database, backups, and who may send without a login.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { dayMs, hourMs, isoTime, minuteMs } from "../../clock.ts";
import { listenText } from "../../config/checks.ts";
import { isPublicAddress } from "../../dns/networks.ts";
import { failingAfter } from "../../model/webhook.ts";
import { recordsOf } from "../../pools/ptr.ts";
import { fail, listed, ok, unknown, warn, type Check } from "../check.ts";

const renewMs = 14 * dayMs;
/** Orders that fail are repeated within this time. */
const overdueMs = 2 * dayMs;
const lateMs = 30 * minuteMs;
const veryLateMs = 4 * hourMs;
const largeLogBytes = 1024 ** 3;
const oldBackupMs = 2 * dayMs;
/** IPv4 networks with more addresses than this are wide. */
const narrowPrefix = 24;

const within = (ms: number): string =>
  ms < 2 * dayMs ? `${Math.round(ms / hourMs)} hours` : `${Math.round(ms / dayMs)} days`;

export const serviceChecks: readonly Check[] = [
  {
    id: "certificate",
    about: "The listeners' certificate is of a known authority, names the host, and is renewed in time.",
    async run({ certificate, certificates, tlsMode, hostname, publicUrl, behindProxy, now }) {
      if (tlsMode === "off") return ok("TLS is off: a proxy has the certificate");
      const all = await certificates();
      const own = all.find(({ isHost }) => isHost);
      if (certificate === null)
        return !own?.error
          ? ok("there is none yet: a start makes one that is self-signed")
          : tlsMode === "files"
            ? fail(own.error, "the service does not start", "put right what tls.cert and tls.key name")
            : fail(
                own.error,
                "a start serves a self-signed certificate in its place",
                "svc cert install --cert FILE --key FILE",
              );
      const leaf = new X509Certificate(certificate);
      const ends = leaf.validToDate.getTime();
      const names = behindProxy ? [hostname] : [hostname, hostOf(publicUrl)]; // the proxy has its own for publicUrl
      const unnamed = [...new Set(names)].filter(
        (name) => (isIP(name) === 0 ? leaf.checkHost(name) : leaf.checkIP(name)) === undefined,
      );
      const isAcme = tlsMode === "acme";
      const failure = own?.error ? `; the last attempt failed: ${own.error}` : "";
      const renew = "see that the name leads to this server and that port 80 is open, then svc cert renew";
      if (ends <= now)
        return fail(
          `it expired at ${isoTime(ends)}${failure}`,
          "clients refuse the connection",
          isAcme ? renew : "renew it, then svc cert install --cert FILE --key FILE",
        );
      if (unnamed.length > 0)
        return fail(
          `it does not name ${listed(unnamed)}${failure}`,
          "clients refuse the connection",
          isAcme ? renew : "get a certificate for these names, then svc cert install --cert FILE --key FILE",
        );
      if (leaf.subject === leaf.issuer)
        return warn(
          `it is self-signed, until ${isoTime(ends)}${failure}`,
          "clients that verify it refuse the connection",
          isAcme
            ? renew
            : "svc config set tls.mode acme, then restart; or svc cert install --cert FILE --key FILE",
        );
      if (ends - now < renewMs && own?.renewAt == null)
        return warn(
          `it expires in ${within(ends - now)}${failure}`,
          "clients refuse the connection then",
          isAcme ? renew : "renew it, then svc cert install --cert FILE --key FILE",
        );
      if (own?.renewAt != null && own.renewAt < now - overdueMs)
        return warn(
          `its renewal has been due since ${isoTime(own.renewAt)}; it expires in ${within(ends - now)}${failure}`,
          "clients refuse the connection then",
          renew,
        );
      if (failure !== "")
        return warn(
          `until ${isoTime(ends)}${failure}`,
          "clients refuse the connection once it has expired",
          isAcme ? renew : "put right what tls.cert and tls.key name; it is noticed within a minute",
        );
      const others = all.filter(({ isHost, isGivenUp, error }) => !isHost && !isGivenUp && error !== null);
      if (others.length > 0)
        return warn(
          `until ${isoTime(ends)}; none from the ACME server for ${listed(others.map(({ name }) => name))}: ${others[0]?.error ?? ""}`,
          "links of tracked mail lead to a certificate that browsers refuse",
          `see that the names lead to this server, then svc cert renew ${others[0]?.name ?? ""}`,
        );
      return ok(
        `until ${isoTime(ends)}${own?.renewAt == null ? "" : `, to be renewed at ${isoTime(own.renewAt)}`}`,
      );
    },
  },
  {
    id: "unit",
    about: "systemd starts the service with the machine, and its last run did not fail.",
    async run({ unit, running }) {
      const facts = await unit();
      if (facts === null) return ok("systemd has no unit of the service");
      const { enabled, active, result, exitStatus } = facts;
      if (!running && result !== "success")
        return fail(
          `the last run ended with ${result}${exitStatus === 0 ? "" : `, status ${exitStatus}`}`,
          "the service does not run",
          "journalctl -u svc-mail -n 50 says why",
        );
      if (enabled === "disabled" || enabled === "masked")
        return warn(
          `${enabled}, ${active}`,
          "after a restart of the machine no mail is taken",
          enabled === "masked" ? "systemctl unmask svc-mail" : "systemctl enable svc-mail",
        );
      return ok(`${enabled}, ${active}`);
    },
  },
  {
    id: "ports",
    about: "Every listener of the configuration is open; of a stopped service, its port is free.",
    async run({ closedListeners, listeners, running }) {
      const closed = await closedListeners();
      const [first] = closed.filter(({ kind }) => kind !== "forbidden");
      const shown = listed(closed.map(({ name, listen, why }) => `${name} on ${listenText(listen)}: ${why}`));
      if (first !== undefined)
        return fail(
          shown,
          "the service does not start",
          first.kind === "taken" && !("path" in first.listen)
            ? `end the other program on the port: ss -ltnp 'sport = :${first.listen.port}' names it`
            : "correct the address in svc.yaml, then restart",
        );
      if (closed.length > 0) return unknown(shown, "run it as root");
      return ok(running ? `${listeners.length} are open` : `${listeners.length} are free`);
    },
  },
  {
    id: "listeners",
    about: "The listening ports answer at the host name's public address.",
    async run({ listeners, hostname, resolver, dial, running }) {
      if (!running) return unknown("the service does not run", "see the check ports");
      const ports = new Map<number, string>();
      for (const { name, listen } of listeners)
        if (!("path" in listen) && !isLoopbackHost(listen.host)) ports.set(listen.port, name);
      if (ports.size === 0) return ok("all are on loopback");
      const [address] = recordsOf(await resolver.a(hostname)).filter(isPublicAddress);
      if (address === undefined)
        return unknown(`${hostname} has no public IPv4 address`, "see the check host-name");
      const dialled = await Promise.all(
        Array.from(ports, async ([port, name]) => ({
          name: `${name} on ${port}`,
          how: await dial(address, port, { from: null, greeting: false }),
        })),
      );
      const refused = dialled.filter(({ how }) => how.kind === "refused");
      if (refused.length > 0)
        return fail(
          `${address} refuses ${listed(refused.map(({ name }) => name))}`,
          "clients and bounces do not come in",
          "open the port in the firewall, and forward it to this machine where a router stands before it",
        );
      const silent = dialled.filter(({ how }) => how.kind !== "open");
      if (silent.length > 0)
        return unknown(
          `no answer at ${address} from ${listed(silent.map(({ name }) => name))}; some routers lead no connection back to the inside`,
          "try from another machine: nc -vz HOST PORT",
        );
      return ok(`${listed(dialled.map(({ name }) => name))} at ${address}`);
    },
  },
  {
    id: "queue",
    about: "Mail does not wait long after it is due.",
    async run({ queue, now }) {
      const { oldestDueAt, queued, deferred } = await queue();
      const late = oldestDueAt === null ? 0 : now - oldestDueAt;
      const saw = `${queued} queued, ${deferred} deferred`;
      if (late < lateMs) return ok(saw);
      const finding = late < veryLateMs ? warn : fail;
      return finding(
        `${saw}; the oldest has been due for ${late < 2 * hourMs ? `${Math.round(late / minuteMs)} minutes` : within(late)}`,
        "a receiver's limits, a pool without a usable address or a full machine hold it back",
        "svc queue list, then svc messages trace of one says which rule holds it",
      );
    },
  },
  {
    id: "webhooks",
    about: "Webhook endpoints take their events.",
    async run({ failingEndpoints }) {
      const failing = (await failingEndpoints()).filter(({ failures }) => failures >= failingAfter);
      if (failing.length === 0) return ok("none fails");
      return warn(
        listed(
          failing.map(({ account, id, failures }) => `${id} of ${account}: ${failures} failures in a row`),
        ),
        "its events wait, and one is tried every few seconds; after ten attempts an event is dead-lettered",
        `svc webhooks deliveries ${failing[0]?.id ?? ""} --failed, and svc webhooks replay once it answers`,
      );
    },
  },
  {
    id: "database",
    about: "The database takes writes, syncs each commit, and its log is copied in.",
    async run({ store }) {
      const facts = await store();
      if ("saw" in facts) return { ...facts, why: "the service needs it" };
      const { journalMode, synchronous, walBytes, writable, full } = facts;
      const saw = `journal ${journalMode}, synchronous ${synchronous}, log ${Math.round(walBytes / 1e6)} MB`;
      if (!writable || full)
        return fail(
          full ? "the disk has less free than limits.min_free_space" : "the last write was refused",
          "no mail is taken",
          "free space on the disk of the data directory; svc status shows the store",
        );
      if (synchronous !== "FULL" && synchronous !== "EXTRA")
        return fail(saw, "a power failure may lose what was acknowledged", "restart the service");
      if (walBytes > largeLogBytes)
        return warn(
          saw,
          "the log takes space, and reads become slower",
          "restart the service in a quiet hour",
        );
      return ok(saw);
    },
  },
  {
    id: "backups",
    about: "A complete backup is not older than two days.",
    async run({ backups, now }) {
      const { at, lastAt } = await backups();
      if (lastAt === null)
        return warn(
          at === null ? "there is none, and backup.at is not set" : `there is none yet; the next is at ${at}`,
          "a lost disk takes keys, suppressions and waiting mail with it",
          at === null ? "set backup.at and backup.to on another disk, or run svc backup daily" : "svc backup",
        );
      if (now - lastAt > oldBackupMs)
        return warn(
          `the last is of ${isoTime(lastAt)}`,
          "what came later is lost with the disk",
          "svc backup; svc logs tell why the daily one failed",
        );
      return ok(`the last is of ${isoTime(lastAt)}`);
    },
  },
  {
    id: "operator-mail",
    about: "Somebody gets mail about dead letters, failing domains and blocklists.",
    run: ({ operationsEmail }) =>
      Promise.resolve(
        operationsEmail === null
          ? warn(
              "operations.email is not set",
              "what goes wrong is in the log alone",
              "set operations.email, then restart",
            )
          : ok(operationsEmail),
      ),
  },
  {
    id: "trusted-networks",
    about: "Networks that may send without a login are small and private.",
    run: ({ relayTrusted }) => {
      const wide = relayTrusted.map(({ network }) => network).filter(isWide);
      return Promise.resolve(
        wide.length === 0
          ? ok(relayTrusted.length === 0 ? "none" : listed(relayTrusted.map(({ network }) => network)))
          : warn(
              `${listed(wide)} may send without a login`,
              "any machine of it, infected ones too, sends in your name",
              "name single hosts in relay.trusted, or give them a login: svc smtp-credentials create",
            ),
      );
    },
  },
];

/** An IPv6 address without the brackets of a URL. */
const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[(.*)\]$/, "$1");

function isLoopbackHost(host: string): boolean {
  return host === "::1" || host.startsWith("127.");
}

function isWide(network: string): boolean {
  const [address = "", prefix = ""] = network.split("/");
  const isV6 = address.includes(":");
  if (prefix !== "" && Number(prefix) < (isV6 ? 64 : narrowPrefix)) return true;
  return isPublicAddress(address) && prefix !== "" && Number(prefix) < (isV6 ? 128 : 32);
}
