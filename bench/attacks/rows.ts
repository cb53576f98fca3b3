// Every attack, in the order in which they run.
import type { Attack } from "./attack.ts";
import { accountAttacks } from "./rows/accounts.ts";
import { contentAttacks } from "./rows/content.ts";
import { dnsAttacks } from "./rows/dns.ts";
import { httpAttacks } from "./rows/http.ts";
import { reportAttacks } from "./rows/reports.ts";
import { smallAttacks } from "./rows/small.ts";
import { smtpAttacks } from "./rows/smtp.ts";
import { trackingAttacks } from "./rows/tracking.ts";

export const attacks: readonly Attack[] = [
  ...reportAttacks,
  ...contentAttacks,
  ...httpAttacks,
  ...dnsAttacks,
  ...accountAttacks,
  ...smtpAttacks,
  ...smallAttacks,
  ...trackingAttacks,
];
