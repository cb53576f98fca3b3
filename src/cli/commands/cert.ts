// `svc cert`: the certificates that the listeners serve.
import type { Command } from "commander";
import { readInputFile, type Cli } from "../cli.ts";
import type { Answer } from "../client.ts";
import { CliFault } from "../fault.ts";
import { rowsOf } from "../lists.ts";
import { field, type Row } from "../output.ts";
import { cell } from "../text.ts";

const pollMs = 500;

export function register(cert: Command, cli: Cli): void {
  cert
    .command("show [name]")
    .description("show the certificates: names, issuer, expiry, listeners, next renewal")
    .action((name?: string) => show(cli, name ?? null));
  cert
    .command("renew [name]")
    .description(
      "order the host's certificate from the ACME server now, or that of a tracking name, and wait for it",
    )
    .action((name?: string) => renew(cli, name ?? null));
  cert
    .command("install")
    .description("check a certificate and its key, put them in place and serve them")
    .requiredOption("--cert <file>", "the certificate chain, PEM")
    .requiredOption("--key <file>", "its private key, PEM")
    .action((flags: { cert: string; key: string }) => install(cli, flags));
}

async function show(cli: Cli, name: string | null): Promise<void> {
  const answer = await cli.client.call("GET", "/v1/certificates");
  if (name === null) {
    if (cli.out.json) return cli.out.body(answer.text);
    const rows = certificatesOf(answer);
    if (rows.length === 0) return cli.out.note("tls.mode is off: a proxy has the certificate.");
    cli.out.table(
      [
        field("name"),
        field("source"),
        field("not_after", "expires"),
        field("renew_at", "next renewal"),
        field("last_error"),
      ],
      rows,
    );
    return cli.out.next(`Details: ${cli.program} cert show NAME`);
  }
  const found = certificatesOf(answer).find((row) => row["name"] === name.toLowerCase());
  if (!found)
    throw new CliFault(3, `there is no certificate of ${name}`, [
      `To see which there are: ${cli.program} cert show`,
    ]);
  showOne(cli, found);
}

/** Begins it, and waits until it has ended: the ACME server takes from seconds to minutes. */
async function renew(cli: Cli, name: string | null): Promise<void> {
  const body = name === null ? {} : { name };
  let row = rowIn(await cli.client.call("POST", "/v1/certificates/renew", { body }), name);
  const before = row["serial"];
  while (row["renewing"] === true) {
    await new Promise<void>((done) => void cli.io.clock.after(pollMs, done));
    row = rowIn(await cli.client.call("GET", "/v1/certificates"), name);
  }
  // An error may remain beside a new one: an address of tls.acme.http_listen that is taken.
  if (row["serial"] !== before) return showOne(cli, row);
  if (row["last_error"] !== null)
    throw new CliFault(1, `no new certificate for ${cell(row["name"])}: ${cell(row["last_error"])}`, [
      `The one before is served on. It is tried again at ${cell(row["next_attempt_at"])}; see also: ${cli.program} doctor --only certificate`,
    ]);
  throw new CliFault(1, "the service was stopped before the order had ended", [
    `It is ordered again when it is due; to order it now: ${cli.program} cert renew ${cell(row["name"])}`,
  ]);
}

async function install(cli: Cli, flags: { cert: string; key: string }): Promise<void> {
  const body = {
    certificate: readInputFile(flags.cert, "--cert").toString("utf8"),
    private_key: readInputFile(flags.key, "--key").toString("utf8"),
  };
  const answer = await cli.client.call("POST", "/v1/certificates/install", { body });
  showOne(cli, rowIn(answer, null));
}

const certificatesOf = ({ json }: Answer): Row[] => rowsOf(json);

/** The host's own comes first. */
function rowIn(answer: Answer, name: string | null): Row {
  const rows = certificatesOf(answer);
  const found = name === null ? rows[0] : rows.find((row) => row["name"] === name.toLowerCase());
  if (!found) throw new CliFault(3, `there is no certificate of ${name ?? "the host"}`);
  return found;
}

function showOne(cli: Cli, row: Row): void {
  if (cli.out.json) return cli.out.body(JSON.stringify(row));
  cli.out.fields(Object.entries(row));
}
