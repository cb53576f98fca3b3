// `svc webhooks verify`: a request that a receiver refused, checked as a receiver does, and why the signature does not
// match. Whether the body or the secret is at fault, the daemon knows, which has the event as it was sent.
import type { Cli } from "../cli.ts";
import { readInputFile, readStandardInput } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { rowsOf } from "../lists.ts";
import type { Finding, Verdict } from "../../webhooks/verify.ts";
import { moment } from "../times.ts";
import { givenSecret, secretVariable } from "../webhook-secret.ts";

export interface VerifyFlags {
  header?: string[];
  headers?: string;
  secretFile?: string;
  at?: string;
}

const largestBody = 4 * 2 ** 20;

export async function verify(cli: Cli, file: string | undefined, flags: VerifyFlags): Promise<void> {
  const given = file === undefined ? null : readInputFile(file, "body");
  const headers = headersOf(flags);
  const secret = givenSecret(cli, flags.secretFile);
  if (secret === null)
    throw usage(
      "no secret is given",
      `Give --secret-file FILE, with what \`${cli.program} webhooks create\` printed, or ${secretVariable}.`,
    );
  const now = cli.io.clock.now();
  const nowMs = flags.at === undefined ? now : Date.parse(moment(flags.at, "--at", "past", now));
  if (given === null && cli.io.stdin.isTTY)
    cli.out.note("Reading the body from the terminal; end it with Ctrl-D.");
  const body = given ?? (await readStandardInput(cli.io, largestBody));
  const { verifyWebhook } = await import("../../webhooks/verify.ts");
  const verdict = verifyWebhook({ headers, body, secret, nowMs });
  const findings: Finding[] = [];
  for (const finding of verdict.findings)
    findings.push(finding.cause === "body_or_secret" ? await decided(cli, finding, headers, body) : finding);
  show(cli, { valid: verdict.valid, findings });
  if (!verdict.valid) throw new CliFault(7, "a receiver refuses this request");
}

function show(cli: Cli, { valid, findings }: Verdict): void {
  if (cli.out.json) return cli.out.body(JSON.stringify({ valid, findings }));
  cli.out.line(valid ? "valid" : "not valid");
  for (const { header, said } of findings) cli.out.line(`  ${header}: ${said}`);
}

/** Lines as they stand in a request, `Name: value`; of a name the last one counts. */
function headersOf({ header = [], headers }: VerifyFlags): Map<string, string> {
  const lines = [
    ...(headers === undefined ? [] : readInputFile(headers, "--headers").toString("utf8").split(/\r?\n/)),
    ...header,
  ];
  const found = new Map<string, string>();
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) found.set(name.toLowerCase(), value);
    else if (header.includes(line)) throw usage(`--header: found "${line}", expected a line "Name: value"`);
  }
  if (found.size === 0)
    throw usage(
      "no headers are given",
      'Give --headers FILE, with the lines of the request, or --header "X-Svc-Timestamp: …" for each.',
    );
  return found;
}

/** With the event as the daemon has it. Where it cannot be asked, the finding stays open. */
async function decided(
  cli: Cli,
  open: Finding,
  headers: ReadonlyMap<string, string>,
  body: Buffer,
): Promise<Finding> {
  const id = headers.get("x-svc-event-id") ?? headers.get("webhook-id") ?? idIn(body);
  if (id === null || !/^evt_[0-9a-z]{26}$/.test(id)) return open;
  const more = (said: string): Finding => ({ ...open, said: `${open.said} ${said}` });
  try {
    const { json } = await cli.client.call("GET", "/v1/events", { query: { event_id: id } });
    const [event] = rowsOf(json);
    if (!event) return more(`The account has no event ${id} (any more) to compare it with.`);
    const { deliveries: _deliveries, ...envelope } = event;
    return compared(open, id, Buffer.from(JSON.stringify(envelope)), body);
  } catch (error) {
    if (!(error instanceof CliFault)) throw error;
    return more(`The event could not be compared: ${error.message}.`);
  }
}

function compared(open: Finding, id: string, sent: Buffer, body: Buffer): Finding {
  if (sent.equals(body)) {
    const said = `the body is that of ${id} as it was sent: the secret is not that of the endpoint, or its timestamp was changed`;
    return { ...open, cause: "secret_wrong", said };
  }
  let at = 0;
  while (at < sent.length && sent[at] === body[at]) at++;
  const near = (bytes: Buffer): string => JSON.stringify(bytes.subarray(at, at + 20).toString());
  const said = `the body is not that of ${id} as it was sent: from byte ${at + 1} on it has ${near(body)} in place of ${near(sent)}`;
  return { ...open, cause: "body_changed", said };
}

function idIn(body: Buffer): string | null {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    const id = value !== null && typeof value === "object" && "event_id" in value ? value.event_id : null;
    return typeof id === "string" ? id : null;
  } catch {
    return null;
  }
}
