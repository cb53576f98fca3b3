// The signing secret of an endpoint, where a command needs one: from a file or from the environment, never from the
// command line, which other users of the machine can read.
import { readInputFile, type Cli } from "./cli.ts";
import { usage } from "./fault.ts";

export const secretVariable = "SVC_WEBHOOK_SECRET";
export const secretFlag = [
  "--secret-file <file>",
  `file with the signing secret of the endpoint (${secretVariable})`,
] as const;

/** null: none is given. Line ends around it are the file's. */
export function givenSecret(cli: Cli, file: string | undefined): string | null {
  const given =
    file === undefined ? cli.io.env[secretVariable] : readInputFile(file, "--secret-file").toString("utf8");
  const secret = given?.replace(/^[\r\n]+|[\r\n]+$/g, "");
  if (secret === undefined || (secret === "" && file === undefined)) return null;
  if (secret === "") throw usage(`--secret-file: found ${file}, but it is empty`);
  return secret;
}
