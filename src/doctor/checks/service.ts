// Checks of the service itself: unit, listeners, queue, webhooks, database, backups, and who may send without a login.
import { dayMs, hourMs, isoTime, minuteMs } from "../../clock.ts";
import { listenText } from "../../config/checks.ts";
import { isPublicAddress } from "../../dns/networks.ts";
import { failingAfter } from "../../model/webhook.ts";
import { recordsOf } from "../../pools/ptr.ts";
import { fail, listed, ok, unknown, warn, within, type Check, type ClosedListener } from "../check.ts";

const lateMs = 30 * minuteMs;
const veryLateMs = 4 * hourMs;
const largeLogBytes = 1024 ** 3;
const oldBackupMs = 2 * dayMs;
/** IPv4 networks with more addresses than this are wide. */
const narrowPrefix = 24;

/** What to do about a port that is not open. */
function mendOfClosed({ name, kind, listen }: ClosedListener): string {
  if (kind === "forbidden")
    return "give it the capability CAP_NET_BIND_SERVICE, as its unit does, or another port";
  if (kind !== "taken" || "path" in listen) return "correct the address in svc.yaml, then restart";
  const end = `end the other program on the port: ss -ltnp 'sport = :${listen.port}' names it`;
  return name === "acme"
    ? `${end}; or let it pass /.well-known/acme-challenge/ on to another address of tls.acme.http_listen`
    : end;
}

export const serviceChecks: readonly Check[] = [
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
      // The service, which runs, may not; who asks of a stopped one may be another user.
      const faults = closed.filter(({ kind }) => running || kind !== "forbidden");
      const [first] = faults;
      const shown = listed(closed.map(({ name, listen, why }) => `${name} on ${listenText(listen)}: ${why}`));
      if (first !== undefined)
        return fail(
          shown,
          faults.every(({ name }) => name === "acme")
            ? "certificates are not ordered, and not renewed, until it is open; it is tried again each minute"
            : "the service does not start",
          mendOfClosed(first),
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

function isLoopbackHost(host: string): boolean {
  return host === "::1" || host.startsWith("127.");
}

function isWide(network: string): boolean {
  const [address = "", prefix = ""] = network.split("/");
  const isV6 = address.includes(":");
  if (prefix !== "" && Number(prefix) < (isV6 ? 64 : narrowPrefix)) return true;
  return isPublicAddress(address) && prefix !== "" && Number(prefix) < (isV6 ? 128 : 32);
}
