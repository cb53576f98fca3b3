// The DKIM signatures of a mail that a receiver got, as a verifier of another author sees them.
import { authenticate } from "mailauth";
import type { Program } from "../support/program.ts";
import type { ReceivedMail } from "../support/smtp-receiver.ts";

/** What the records of ok.test make of each signature of a mail, e.g. `["pass", "pass"]`. */
export async function signatureReader(
  program: Program,
): Promise<(mail: Pick<ReceivedMail, "data">) => Promise<string[]>> {
  const { records } = await program.admin("GET", "/v1/domains/ok.test");
  const zone = new Map(
    (records as { name: string; value: string }[]).map(({ name, value }) => [name, value]),
  );
  return async ({ data }) => {
    const { dkim } = await authenticate(data, {
      ip: "127.0.0.1",
      helo: "mail.svc.test",
      sender: "bounce@ok.test",
      resolver: async (name: string) => {
        const value = zone.get(name);
        if (value === undefined) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
        return [[value]];
      },
    });
    return dkim.results.map(({ status }) => status.result);
  };
}
