// Every noun of the store, and what follows from their declarations: the commands of the writer's thread, the lists of the
// reader's, the look-ups of the loop, what each write touches for Last-Modified, and the calls of the Store.
import type { Database } from "better-sqlite3";
import type { Touch } from "../changes.ts";
import { accounts } from "./accounts.ts";
import { apiKeys } from "./api-keys.ts";
import { audit } from "./audit.ts";
import { boots } from "./boots.ts";
import { content } from "./content.ts";
import { domains } from "./domains.ts";
import { erasure } from "./erasure.ts";
import { events } from "./events.ts";
import { inbox } from "./inbox.ts";
import { ipPools } from "./ip-pools.ts";
import { listings } from "./listings.ts";
import { maintenance } from "./maintenance.ts";
import { messages } from "./messages.ts";
import { mtaSts } from "./mta-sts.ts";
import type { Parts, Writing } from "./noun.ts";
import { nxdomainRechecks } from "./nxdomain-rechecks.ts";
import { queue } from "./queue.ts";
import { queueEntries } from "./queue-entries.ts";
import { queuePauses } from "./queue-pauses.ts";
import { reports } from "./reports.ts";
import { retention } from "./retention.ts";
import { secrets } from "./secrets.ts";
import { sendingPause } from "./sending-pause.ts";
import { settlements } from "./settlement.ts";
import { shaping } from "./shaping.ts";
import { smtpCredentials } from "./smtp-credentials.ts";
import { statistics } from "./statistics.ts";
import { suppressions } from "./suppressions.ts";
import { tlsResults } from "./tls-results.ts";
import { tracking } from "./tracking.ts";
import { warmups } from "./warmups.ts";
import { webhooks } from "./webhooks.ts";

const nouns = {
  accounts,
  apiKeys,
  audit,
  boots,
  content,
  domains,
  erasure,
  events,
  inbox,
  ipPools,
  listings,
  maintenance,
  messages,
  mtaSts,
  nxdomainRechecks,
  queue,
  queueEntries,
  queuePauses,
  reports,
  retention,
  secrets,
  sendingPause,
  settlements,
  shaping,
  smtpCredentials,
  statistics,
  suppressions,
  tlsResults,
  tracking,
  warmups,
  webhooks,
};

type Nouns = typeof nouns;
type Kind = "commands" | "lookups" | "lists" | "calls";
type Intersection<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void
  ? I
  : never;
/** The functions of a kind that all nouns declare. */
type All<K extends Kind> = Intersection<ReturnType<Nouns[keyof Nouns][K]>>;

/** The commands that write one thing each. */
export type Commands = All<"commands">;
export type Lookups = All<"lookups">;
export type Lists = All<"lists">;

export const prepareCommands = (db: Database, writing: Writing): Commands =>
  joined(distinct(Object.values(nouns).map((noun) => noun.commands(db, writing)))) as Commands;
export const prepareLookups = (db: Database): Lookups =>
  joined(distinct(Object.values(nouns).map((noun) => noun.lookups(db)))) as Lookups;
export const prepareLists = (db: Database): Lists =>
  joined(distinct(Object.values(nouns).map((noun) => noun.lists(db)))) as Lists;
export const callsOf = (parts: Parts<Commands, Lookups, Lists>): All<"calls"> =>
  joined(Object.values(nouns).map((noun) => noun.calls(parts))) as All<"calls">;

/** By the name of a command; the types are checked where each is declared. */
export const touches = joined(Object.values(nouns).map((noun) => noun.touches)) as Record<
  string,
  (touch: Touch, arg: never, result: never) => void
>;

/** The tables as one. */
function joined(tables: readonly object[]): object {
  return Object.assign({}, ...tables) as object;
}

/** A name that two nouns declare is a fault of the program. */
function distinct(tables: readonly object[]): readonly object[] {
  const names = tables.flatMap((table) => Object.keys(table));
  const twice = names.filter((name, place) => names.indexOf(name) < place);
  if (twice.length > 0) throw new Error(`two nouns declare ${twice.join(", ")}`);
  return tables;
}
