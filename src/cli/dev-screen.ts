// What `svc serve --dev` prints: where it listens, a key, a login, and lines to paste. Under --json
// the same as one JSON object.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "../config.ts";
import type { Cli } from "./cli.ts";

export interface DevScreen {
  config: Config;
  credentials: { key: string; smtpUsername: string; smtpPassword: string };
  addresses: { name: string; address: string }[];
  /** The other commands find the socket by themselves. */
  found: boolean;
  temporary: boolean;
}

export function describeDev(cli: Cli, screen: DevScreen): void {
  const { config, credentials, addresses, found, temporary } = screen;
  const of = (name: string): string[] =>
    addresses.filter((one) => one.name === name).map((one) => one.address);
  const url = `https://${of("http")[0] ?? config.publicUrl.replace("https://", "")}`;
  const starttls = of("smtp");
  const implicit = of("smtps");
  const certificate = join(config.dataDir, "tls", "cert.pem");
  const trust = existsSync(certificate) ? `--cacert ${certificate}` : "-k";
  if (cli.out.json)
    return cli.out.body(
      JSON.stringify({
        url,
        key: credentials.key,
        smtp: {
          starttls,
          implicit_tls: implicit,
          username: credentials.smtpUsername,
          password: credentials.smtpPassword,
        },
        certificate,
        socket: config.socket,
        data_dir: config.dataDir,
      }),
    );
  const svc = cli.program;
  const print = (...lines: string[]): void => cli.out.text(lines.join("\n"));
  print(
    `svc ${cli.version} in evaluation mode: all mail goes to the local inbox, none leaves this machine.`,
    "",
  );
  cli.out.fields([
    ["API", url],
    ["send key", credentials.key],
    ["SMTP", [...starttls.map((one) => `${one} (STARTTLS)`), ...implicit.map((one) => `${one} (TLS)`)]],
    ["SMTP login", credentials.smtpUsername],
    ["SMTP password", credentials.smtpPassword],
    ["data", `${config.dataDir}${temporary ? " (removed on exit)" : ""}`],
  ]);
  print(
    "",
    "Send a message, by HTTP or by SMTP:",
    "",
    `  curl ${trust} ${url}/v1/messages -H 'Authorization: Bearer ${credentials.key}' -H 'Content-Type: application/json' -d '{"from":"hello@example.test","to":"you@example.com","subject":"Hello","text":"It works."}'`,
    "",
    `  swaks --server ${starttls[0] ?? "127.0.0.1:8587"} --tls --auth PLAIN --auth-user ${credentials.smtpUsername} --auth-password '${credentials.smtpPassword}' --from hello@example.test --to you@example.com`,
    "",
    "Then, in another terminal here:",
    "",
    ...(found ? [] : [`  export SVC_SOCKET=${config.socket}`]),
    `  ${svc} inbox list`,
    `  ${svc} events tail`,
    "",
    "Press Ctrl-C to stop.",
  );
}
