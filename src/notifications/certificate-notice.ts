// The operator's mail when a certificate cannot be renewed, or the files of one cannot be used.
import { isoTime } from "../clock.ts";
import type { CertificateTrouble } from "../tls/states.ts";
import type { Notices } from "./notices.ts";

export async function notifyCertificate(
  notices: Pick<Notices, "notify">,
  { name, error, nextAt, until }: CertificateTrouble,
): Promise<void> {
  const served =
    until === null
      ? "A self-signed certificate is served meanwhile, which clients that verify it refuse."
      : `The certificate before it is served on; it expires at ${isoTime(until)}.`;
  const next =
    nextAt === null
      ? "It is used as soon as the files are right: no reload is needed."
      : `It is tried again at ${isoTime(nextAt)}.`;
  const mend =
    nextAt === null
      ? "What to do: put a certificate and its key where tls.cert and tls.key say, then look: svc cert show"
      : `What to do: where the reason is about the name, see that it leads to this server in the DNS and that port 80 is open to it, then: svc cert renew ${name}`;
  await notices.notify(
    `certificate:${name}`,
    `no new certificate for ${name}`,
    `${error}\n\n${served} ${next}\n\n${mend}\n`,
  );
}
