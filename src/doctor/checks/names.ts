// Checks of names and addresses as receivers see them: host name, reverse names, port 25, blocklists, the resolver.
import { isIP } from "node:net";
import { isPublicAddress } from "../../dns/networks.ts";
import type { DnsAnswer } from "../../dns/resolver.ts";
import { lookUpPtr, recordsOf } from "../../pools/ptr.ts";
import { isUsable } from "../../pools/sources.ts";
import { fail, listed, ok, unknown, warn, type Check, type Finding, type World } from "../check.ts";

/** Open resolvers, whose queries Spamhaus and others refuse: they come from everybody. */
const publicResolvers = new Map([
  ["8.8.8.8", "Google"],
  ["8.8.4.4", "Google"],
  ["2001:4860:4860::8888", "Google"],
  ["2001:4860:4860::8844", "Google"],
  ["1.1.1.1", "Cloudflare"],
  ["1.0.0.1", "Cloudflare"],
  ["2606:4700:4700::1111", "Cloudflare"],
  ["2606:4700:4700::1001", "Cloudflare"],
  ["9.9.9.9", "Quad9"],
  ["149.112.112.112", "Quad9"],
  ["2620:fe::fe", "Quad9"],
  ["208.67.222.222", "OpenDNS"],
  ["208.67.220.220", "OpenDNS"],
]);

const ownResolver =
  "install a resolver on this machine (apt install unbound) and set dns.servers: [127.0.0.1]";

/** Servers that everybody sends mail to, for a look whether port 25 is open. */
const largeReceivers = ["gmail.com", "outlook.com", "yahoo.com"];

async function addressesOf(world: World, name: string): Promise<DnsAnswer<string>[]> {
  return Promise.all([world.resolver.a(name), world.resolver.aaaa(name)]);
}

/** Its name is looked up as delivery does (delivery/addresses.ts): dns.servers may know another than the system. */
async function smartHostAnswers(
  world: World,
  { host, port }: NonNullable<World["outbound"]["smartHost"]>,
): Promise<Finding> {
  const name = `the smart host ${host}:${port}`;
  const literal = isIP(host) !== 0 || host === "localhost";
  const answers = literal ? [] : await addressesOf(world, host);
  const addresses = literal ? [host] : answers.flatMap(recordsOf);
  if (addresses.length === 0 && answers.some(({ kind }) => kind === "failed"))
    return unknown(`the DNS did not answer for ${name}`, "see the check resolver");
  const why: string[] = addresses.length === 0 ? ["the name has no address"] : [];
  for (const address of addresses.slice(0, 4)) {
    const dialled = await world.dial(address, port, { from: null, greeting: true });
    if (dialled.kind === "open") return ok(`${name} answers`);
    why.push(dialled.why);
  }
  return fail(
    `${name}: ${listed([...new Set(why)])}`,
    "no mail leaves",
    "correct outbound.smart_host, or open the port in the firewall",
  );
}

const passwordFile = "/etc/svc/smart-host.password";
/** One command, since the options are checked together. */
const setSmartHost = `svc config set outbound.smart_host.host HOST outbound.smart_host.user USER outbound.smart_host.password_file ${passwordFile}`;

export const nameChecks: readonly Check[] = [
  {
    id: "host-name",
    about: "The host name has an address in the DNS, and the address's reverse name (PTR) is the host name.",
    async run(world) {
      const { hostname, resolver } = world;
      const answers = await addressesOf(world, hostname);
      const failed = answers.find((answer) => answer.kind === "failed");
      const addresses = answers.flatMap(recordsOf);
      if (addresses.length === 0)
        return failed?.kind === "failed"
          ? unknown(`the DNS did not answer for ${hostname} (${failed.why})`, "see the check resolver")
          : fail(
              `${hostname} has neither an A nor an AAAA record`,
              "receivers look the EHLO name up, and bounces come to it",
              `publish an A record for ${hostname} with this server's public address, or correct hostname in svc.yaml`,
            );
      const named = await Promise.all(addresses.map((address) => lookUpPtr(resolver, address, hostname)));
      const wrong = addresses.filter((_, at) => named[at]?.ptrOk === false);
      if (wrong.length > 0)
        return fail(
          `${hostname} has ${listed(addresses)}; the reverse name of ${listed(wrong)} is not ${hostname}`,
          "Gmail and others refuse mail from addresses whose reverse name does not match (FCrDNS)",
          `ask the owner of the address, mostly your hosting provider, to set its reverse name (PTR) to ${hostname}`,
        );
      if (named.some((look) => look === null || look.ptrOk === null))
        return unknown(`${hostname} has ${listed(addresses)}; the DNS did not answer for its reverse name`);
      return ok(`${hostname} has ${listed(addresses)}, and back`);
    },
  },
  {
    id: "sending-addresses",
    about: "This machine has every address of every IP pool and of outbound.source.",
    async run({ pools, sending }) {
      const all = pools.flatMap((pool) => pool.addresses.map((one) => ({ ...one, pool: pool.name })));
      const missing = all.filter(({ bindable, paused }) => bindable === false && !paused);
      if (missing.length > 0)
        return fail(
          `this machine does not have ${listed(missing.map(({ address, pool }) => `${address} (pool ${pool})`))}`,
          "mail of the pool waits, or leaves from its other addresses alone",
          `add the address to an interface (ip address add ${missing[0]?.address ?? ""}/32 dev eth0), or remove it: svc ips remove`,
        );
      const names = sending.map(({ address }) => address ?? "the system's choice");
      return ok(listed(names) || "no address of its own: a smart host sends");
    },
  },
  {
    id: "reverse-names",
    about:
      "The reverse name of each sending address is the name that is said in EHLO from there, and leads back.",
    async run({ sending, resolver }) {
      const own = sending.filter((one): one is { address: string; ehloName: string } => one.address !== null);
      const looks = await Promise.all(
        own
          .filter(({ address }) => isPublicAddress(address))
          .map(async (one) => ({ ...one, look: await lookUpPtr(resolver, one.address, one.ehloName) })),
      );
      const wrong = looks.filter(({ look }) => look?.ptrOk === false);
      if (wrong.length > 0)
        return fail(
          listed(
            wrong.map(
              ({ address, ehloName, look }) =>
                `${address} is ${look?.ptr ?? "without a reverse name"}, not ${ehloName}`,
            ),
          ),
          "Gmail and others refuse mail from such an address; of IPv6 always",
          "have the reverse name (PTR) set at the hosting provider, and an A or AAAA record that leads back",
        );
      const failed = looks.filter(({ look }) => look === null || look.ptrOk === null);
      if (failed.length > 0)
        return unknown(`the DNS did not answer for ${listed(failed.map(({ address }) => address))}`);
      if (looks.length === 0) return ok("no public address is configured; see host-name");
      return ok(listed(looks.map(({ address, ehloName }) => `${address} ↔ ${ehloName}`)));
    },
  },
  {
    id: "port-25",
    about:
      "Servers of the Internet can be reached on port 25 from each sending address, or the smart host can be.",
    async run(world) {
      const { outbound, sending, resolver, dial } = world;
      if (outbound.smartHost) return smartHostAnswers(world, outbound.smartHost);
      const hosts: string[] = [];
      for (const domain of largeReceivers) {
        const answer = await resolver.mx(domain);
        if (answer.kind !== "found") continue;
        const [first] = answer.records.toSorted((a, b) => a.preference - b.preference);
        const found = first ? recordsOf(await resolver.a(first.exchange)) : [];
        if (found[0] !== undefined) hosts.push(found[0]);
      }
      if (hosts.length === 0)
        return unknown("the DNS gave no mail server of Gmail, Outlook or Yahoo", "see the check resolver");
      const sources = sending.filter(({ address }) => address === null || isIP(address) === 4).slice(0, 16);
      if (sources.length === 0) return unknown("no IPv4 address of this machine is used to send");
      const looks = await Promise.all(
        sources.map(async ({ address }) => ({
          address,
          dialled: await Promise.all(
            hosts.map((host) => dial(host, outbound.port, { from: address, greeting: true })),
          ),
        })),
      );
      const closed = looks
        .filter(({ dialled }) => !dialled.some(({ kind }) => kind === "open"))
        .map(({ address, dialled: [first] }) => {
          const why = first === undefined || first.kind === "open" ? "" : first.why;
          return `${address ?? "the system's choice"} (${why})`;
        });
      if (closed.length > 0)
        return fail(
          `no connection to port ${outbound.port} of Gmail, Outlook or Yahoo from ${listed(closed)}`,
          "no mail leaves: many hosting providers block port 25 until they are asked",
          `ask the provider to open port 25, or send through a smart host: write its password into ${passwordFile}, run ${setSmartHost}, and start the service again`,
        );
      return ok(`Gmail, Outlook or Yahoo answer on port ${outbound.port}`);
    },
  },
  {
    id: "blocklists",
    about: "No blocklist (DNSBL) has a sending address, and the blocklists can be asked.",
    async run({ listed: listings, unusableZones }) {
      if (listings.length > 0)
        return fail(
          listed(listings.map(({ address, zone }) => `${address} is on ${zone}`)),
          "receivers that ask the list refuse the mail",
          "end the cause, then ask for the removal: svc blacklists list names the page",
        );
      if (unusableZones.length > 0)
        return warn(
          `not listed where it could be asked; not ${listed(unusableZones.map(({ zone, detail }) => `${zone} (${detail})`))}`,
          "a listing there is not noticed",
          ownResolver,
        );
      return ok("not listed");
    },
  },
  {
    id: "resolver",
    about: "The DNS servers answer, and are not open ones, which blocklists refuse.",
    async run({ dnsServers, resolver, hostname }) {
      const answer = await resolver.a(hostname);
      if (answer.kind === "failed")
        return fail(
          `${listed(dnsServers)}: ${answer.why}`,
          "no mail leaves while the DNS does not answer",
          "correct dns.servers or /etc/resolv.conf, or install a resolver on this machine (apt install unbound)",
        );
      const open = dnsServers.filter((server) => publicResolvers.has(server));
      if (open.length > 0)
        return warn(
          listed(open.map((server) => `${server} is ${publicResolvers.get(server)}'s`)),
          "Spamhaus and other blocklists do not answer open resolvers, and these limit how much one asks",
          ownResolver,
        );
      return ok(`${listed(dnsServers)} answers`);
    },
  },
  {
    id: "ipv6",
    about: "IPv6 is used with a reverse name, or not at all: receivers are stricter with it.",
    async run({ pools, sending }) {
      const unnamed = pools.flatMap(({ addresses }) =>
        addresses.filter((one) => isIP(one.address) === 6 && isUsable(one) && one.ptrOk === false),
      );
      if (unnamed.length > 0)
        return warn(
          `${listed(unnamed.map(({ address }) => address))} has no right reverse name`,
          "Gmail refuses IPv6 without one; mail leaves from there only where nothing else of the pool reaches the receiver",
          "have the reverse name set, or remove the address: svc ips remove",
        );
      const used = sending.filter(({ address }) => address !== null && isIP(address) === 6);
      return ok(used.length === 0 ? "no IPv6 address is configured" : `${used.length} with reverse names`);
    },
  },
];
