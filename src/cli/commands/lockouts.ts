// `svc lockouts`: the source addresses that are refused after failed authentications, and the way to let one in again.
import type { Command } from "commander";
import type { Cli } from "../cli.ts";
import { field } from "../output.ts";
import { addVerbs, type Verb } from "../verbs.ts";

export const verbs: readonly Verb[] = [
  {
    name: "list",
    about: "list the source addresses that are locked out",
    lists: "/v1/lockouts",
    columns: [field("source"), field("failures"), field("until")],
    empty: () => "No source address is locked out.",
  },
  {
    name: "clear",
    about: "end the lock-out of an address; its failures count from zero again",
    route: "DELETE /v1/lockouts/{ip}",
    show(cli, _answer, ip) {
      if (!cli.out.json) cli.out.line(`${ip} may authenticate again`);
    },
  },
];

export function register(lockouts: Command, cli: Cli): void {
  addVerbs(lockouts, cli, verbs);
  lockouts.addHelpText(
    "afterAll",
    `
50 failed authentications in a row from one address (IPv6:
one /64), by HTTP and SMTP together, lock it out for five
minutes, also with a valid key. Behind a proxy the address
counts that it passes on (http.trusted_proxies).

Examples:
  svc lockouts list
  svc lockouts clear 192.0.2.7`,
  );
}
