// The facts of something counted, which say in which rows of the statistics it counts. They are one line of text each,
// made where the thing happens, so that handing them to the writer and finding equal ones costs little; the store takes
// them apart when counts are folded (store/counters.ts).

export interface MailFacts {
  accountKey: number;
  test: boolean;
  /** The domain that is sent from; null where it is not known. */
  domain: string | null;
  pool: string | null;
  tagsJson: string;
  recipientDomain: string;
  ip: string | null;
  /** Group of MX hosts. */
  provider: string | null;
  /** Of a bounce only. */
  classification: string | null;
}

/** No part can hold a line end: names of hosts, domains and pools have none, and JSON text writes them as \n. */
export function mailFacts(f: MailFacts): string {
  return `${f.accountKey}\n${f.test ? 1 : 0}\n\n${f.recipientDomain}\n${f.domain ?? ""}\n${f.pool ?? ""}\n${f.ip ?? ""}\n${f.provider ?? ""}\n${f.classification ?? ""}\n${f.tagsJson}`;
}

export const isTest = (facts: string): boolean => facts.charAt(facts.indexOf("\n") + 1) === "1";

export function webhookFacts(accountKey: number, test: boolean, endpointId: string): string {
  return `${accountKey}\n${test ? 1 : 0}\n${endpointId}`;
}
