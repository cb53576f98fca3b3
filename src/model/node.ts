// A node: a process that sends and receives mail, on a machine of its own. A data directory has one. What its machine sees
// is true of no other: which addresses it can bind is stored under its name (store/sqlite/ip-pools.ts); the addresses of
// its interfaces and of its host name, by which it knows an MX that is itself, are in its memory alone
// (delivery/local-addresses.ts, delivery/own-addresses.ts). The SPF record of a sender domain is made at each check of the
// configured source addresses and those of the pools (domains/manage.ts).

/** Its name; not the host name, which may change while what is kept under the name stays. */
export const theNode = "default";
