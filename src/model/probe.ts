// A probe: the road of mail to a mailbox, taken up to the reply to RCPT; no message is sent.
import type { DialogueLine } from "./attempt.ts";
import type { Classification } from "./classification.ts";
import type { OutboundTls, TlsSummary } from "./tls.ts";

/** `accepted`: the server takes the recipient; `unreached`: no server was asked. */
export const probeOutcomes = ["accepted", "deferred", "refused", "unreached"] as const;
export type ProbeOutcome = (typeof probeOutcomes)[number];

/** `failure`: why its addresses are not known; null: they are. */
export interface ProbedHost {
  host: string;
  preference: number;
  addresses: string[];
  failure: string | null;
}

export interface Probe {
  recipient: string;
  domain: string;
  /** The group of its first MX host; null: the domain has no mail host. */
  mxGroup: string | null;
  /** By preference; the addresses of the first five. */
  mx: ProbedHost[];
  /** What the operator asks of TLS there. */
  tlsWanted: OutboundTls;
  sendingIp: string | null;
  host: string | null;
  address: string | null;
  tls: TlsSummary | null;
  outcome: ProbeOutcome;
  classification: Classification | null;
  smtpCode: number | null;
  smtpStatus: string | null;
  /** The server's words, or ours where none spoke. */
  smtpResponse: string;
  dialogue: DialogueLine[];
}
