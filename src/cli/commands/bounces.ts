// `svc bounces explain`: how an SMTP reply or a bounce message is classified. Needs no daemon.
import type { Command } from "commander";
import { asCalled } from "../as-called.ts";
import { readInputFile, type Cli } from "../cli.ts";
import { CliFault, usage } from "../fault.ts";
import { advice } from "../../mail/advice.ts";
import { ruleOf } from "../../mail/classify.ts";
import { bounceCategories } from "../../model/classification.ts";
import { classifyFailure, failureType, replyOf, type Failure } from "../../mail/failure.ts";
import { quotedReply } from "../../mail/reply-text.ts";
import { readReturned } from "../../mail/returned.ts";
import { failureSuppresses, replySuppresses } from "../../suppressions/policy.ts";

const longest = 2 * 1024 * 1024;

export function register(bounces: Command, cli: Cli): void {
  bounces
    .command("explain [text]")
    .description("show how a reply is classified, who is at fault and whether it suppresses the recipient")
    .option("--file <mail>", "a bounce message (message/rfc822) instead of a reply's text")
    .action((text: string | undefined, flags: { file?: string }) => {
      if ((text === undefined) === (flags.file === undefined))
        throw usage(
          "expected a reply's text or --file, and not both",
          `For example: ${cli.program} bounces explain "550 5.1.1 no such user"`,
        );
      if (flags.file !== undefined)
        return explainMail(cli, readInputFile(flags.file, "--file").subarray(0, longest));
      const reply = quotedReply(text ?? "");
      const failure = { recipients: [], ...reply, mta: null, reportedAt: null };
      show(cli, failure, replySuppresses(replyOf(failure)));
    });
}

function explainMail(cli: Cli, mail: Uint8Array): void {
  const returned = readReturned(mail);
  if (returned.kind === "complaint") {
    const { type, source } = returned.complaint;
    throw new CliFault(
      1,
      `this is a complaint (${type}${source === null ? "" : `, from ${source}`}), not a bounce`,
      ["A complaint raises message.complained and suppresses the recipient."],
    );
  }
  if (returned.kind === "nothing") throw new CliFault(1, `this is not a bounce: ${returned.why}`);
  for (const failure of returned.failures) show(cli, failure, failureSuppresses(failure));
}

/** One failure: an object a line with --json. */
function show(cli: Cli, failure: Failure, suppresses: boolean): void {
  const classification = classifyFailure(failure);
  const [fault, todo] = advice[classification];
  const facts = {
    bounce_type: failureType(failure),
    bounce_classification: classification,
    bounce_category: bounceCategories[classification],
    suppresses,
    whose_fault: fault,
    advice: todo,
  };
  if (cli.out.json) return cli.out.body(JSON.stringify(facts));
  const [recipient] = failure.recipients;
  cli.out.fields([
    ["recipient", recipient ?? ""],
    ["reply", failure.text],
    ["type", facts.bounce_type],
    ["cause", `${classification} (${facts.bounce_category})`],
    ["because of", ruleOf(replyOf(failure))],
    ["whose fault", fault],
    ["suppresses", suppresses ? "yes" : "no"],
    ["advice", asCalled(todo, cli.program)],
  ]);
}
