// `svc suppressions import`: the list of another service, or plain CSV, a thousand addresses a request, those of a long piece of
// the file in the order of the list: neighbours share its pages, and each page that a request changes is written once for it.
// What it has added stays where it is interrupted; to repeat it does no harm.
import { canonicalAddress, parseAddress } from "../../mail/address.ts";
import { orList } from "../../word-list.ts";
import { suppressionReasons, type SuppressionReason } from "../../model/suppression.ts";
import type { Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { rowsOfFile, serviceNames, type ImportedRow } from "../suppression-files.ts";

export interface ImportFlags {
  from: string;
  reason?: string;
  dryRun?: boolean;
}

interface Report {
  read: number;
  added: number;
  updated: number;
  already_suppressed: number;
  skipped: number;
  invalid: number;
  /** Of those that were taken. */
  reasons: Partial<Record<SuppressionReason, number>>;
  /** The first of those that are not addresses. */
  examples: { line: number; email: string; issue: string }[];
}

interface Entry {
  email: string;
  reason: SuppressionReason;
  description?: string;
}

interface Sortable {
  canonical: string;
  entry: Entry;
}

/** A piece of the file. */
interface Piece {
  entries: Sortable[];
  /** Up to its last row: how much of the file, and how many rows. */
  share: number;
  read: number;
}

const atOnce = 1_000;
/** Entries of a piece: some 10 MB, and one is sent while the next is read. */
const ofPiece = 50_000;
const mostExamples = 10;

export async function importSuppressions(cli: Cli, path: string, flags: ImportFlags): Promise<void> {
  const { from, reason } = flags;
  if (!serviceNames.includes(from)) throw usage(`--from: found "${from}", expected ${orList(serviceNames)}`);
  if (reason !== undefined && !isReason(reason))
    throw usage(`--reason: found "${reason}", expected ${orList(suppressionReasons)}`);
  const report: Report = {
    read: 0,
    added: 0,
    updated: 0,
    already_suppressed: 0,
    skipped: 0,
    invalid: 0,
    reasons: {},
    examples: [],
  };
  const progress = createProgress(cli);
  let piece: Piece = { entries: [], share: 0, read: 0 };
  /** The piece that is sent, while the next is read. */
  let sent: Promise<Piece> = Promise.resolve(piece);
  let stopped = false;
  const flush = async (share: number): Promise<void> => {
    const full = { ...piece, share, read: report.read };
    piece = { entries: [], share: 0, read: 0 };
    const before = await sent;
    if (flags.dryRun === true) {
      if (share < 1) progress(share, report.read);
      return;
    }
    sent = postPiece(cli, before, full, report, progress, () => stopped);
    sent.catch(() => undefined); // told where it is waited for
  };
  try {
    for await (const row of rowsOfFile(path, from)) {
      report.read += 1;
      const sortable = entryOf(row, reason, report, path);
      if (sortable) piece.entries.push(sortable);
      if (piece.entries.length >= ofPiece) await flush(row.share);
    }
    await flush(1);
    await sent;
  } catch (error) {
    stopped = true;
    await sent.catch(() => undefined); // of a row that cannot be read it is not yet known how many were sent before it
    const done = report.added + report.updated + report.already_suppressed;
    if (error instanceof CliFault && done > 0)
      throw new CliFault(error.exit, error.message, [
        ...error.advice,
        `The addresses of ${done} rows are on the list by now; to run the command again does no harm.`,
      ]);
    throw error;
  } finally {
    progress(null, 0);
  }
  show(cli, report, flags.dryRun === true);
}

const isReason = (text: string): text is SuppressionReason =>
  (suppressionReasons as readonly string[]).includes(text);

/** null: it is left out, and counted. */
function entryOf(row: ImportedRow, given: string | undefined, report: Report, path: string): Sortable | null {
  if (row.skipped !== null) {
    report.skipped += 1;
    return null;
  }
  const address = parseAddress(row.email);
  if (!address.ok) {
    report.invalid += 1;
    if (report.examples.length < mostExamples)
      report.examples.push({ line: row.line, email: row.email.slice(0, 100), issue: address.issue });
    return null;
  }
  const reason = row.reason ?? (given as SuppressionReason | undefined);
  if (reason === undefined)
    throw usage(
      `${path}, line ${row.line}: found no reason why ${row.email} is suppressed, expected --reason ${suppressionReasons.join("|")} for a file that does not say`,
    );
  report.reasons[reason] = (report.reasons[reason] ?? 0) + 1;
  const entry = {
    email: row.email,
    reason,
    ...(row.description === null ? {} : { description: row.description }),
  };
  return { canonical: canonicalAddress(address.value), entry };
}

async function postPiece(
  cli: Cli,
  before: Piece,
  piece: Piece,
  report: Report,
  progress: Progress,
  stopped: () => boolean,
): Promise<Piece> {
  const { entries } = piece;
  entries.sort((a, b) => (a.canonical < b.canonical ? -1 : a.canonical > b.canonical ? 1 : 0));
  const between = (from: number, to: number, at: number): number =>
    from + ((to - from) * at) / entries.length;
  for (let at = 0; at < entries.length && !stopped(); at += atOnce) {
    if (at > 0)
      progress(between(before.share, piece.share, at), Math.round(between(before.read, piece.read, at)));
    const some = entries.slice(at, at + atOnce);
    await post(
      cli,
      some.map(({ entry }) => entry),
      report,
    );
  }
  return { ...piece, entries: [] };
}

async function post(cli: Cli, suppressions: readonly Entry[], report: Report): Promise<void> {
  const body = { suppressions, source: "import", on_invalid: "skip" };
  const { json } = await cli.client.call("POST", "/v1/suppressions", { body });
  const [added, updated] = [Number(json["added"]), Number(json["updated"])];
  report.added += added;
  report.updated += updated;
  // With those that are twice in the request, which the service counts once.
  report.already_suppressed += suppressions.length - added - updated;
}

type Progress = (share: number | null, read: number) => void;

/** On a terminal, one line that is written again and again; null ends it. */
function createProgress({ io, out }: Cli): Progress {
  const shown = io.stderr.isTTY && !out.json;
  let written = false;
  return (share, read) => {
    if (!shown || (share === null && !written)) return;
    written = share !== null;
    io.stderr.write(
      share === null
        ? "\r\x1b[K"
        : `\rimporting: ${Math.floor(share * 100)} %, ${read.toLocaleString("en")} rows\x1b[K`,
    );
  };
}

function show(cli: Cli, report: Report, dryRun: boolean): void {
  if (cli.out.json) return cli.out.body(JSON.stringify({ dry_run: dryRun, ...report }));
  const { read, added, updated, already_suppressed: already, skipped, invalid, reasons, examples } = report;
  cli.out.fields([
    ["read", read],
    ...(dryRun
      ? []
      : ([
          ["added", added],
          ["updated", `${updated}, with a stronger reason`],
          ["already there", already],
        ] as [string, unknown][])),
    ["left out", `${skipped} that are suppressed for a while only, or are not suppressions`],
    ["no addresses", invalid],
    ...Object.entries(reasons).map(([reason, count]): [string, unknown] => [reason.replace("_", " "), count]),
  ]);
  for (const { line, email, issue } of examples) cli.out.note(`line ${line}: ${email} ${issue}`);
  if (dryRun) cli.out.next("Nothing was changed. To import it, leave out --dry-run");
}
