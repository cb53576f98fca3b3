// HTTP-date (RFC 9110 §5.6.7): the one form that is written, and the two old ones that are still read. A date counts
// only where it is the very text that its moment would be written as: right weekday, a day that exists, its case kept.

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const clockTime = "(?<h>\\d\\d):(?<m>\\d\\d):(?<s>\\d\\d)";

interface Form {
  pattern: RegExp;
  write(date: Date): string;
}

const forms: readonly Form[] = [
  {
    // Fri, 27 Nov 2026 09:00:00 GMT
    pattern: new RegExp(`^\\w{3}, (?<day>\\d\\d) (?<month>\\w{3}) (?<year>\\d{4}) ${clockTime} GMT$`),
    write: (date) => date.toUTCString(),
  },
  {
    // Friday, 27-Nov-26 09:00:00 GMT
    pattern: new RegExp(`^\\w{6,9}, (?<day>\\d\\d)-(?<month>\\w{3})-(?<year>\\d\\d) ${clockTime} GMT$`),
    write: (date) =>
      `${days[date.getUTCDay()]}, ${two(date.getUTCDate())}-${monthOf(date)}-${two(date.getUTCFullYear() % 100)} ${timeOf(date)} GMT`,
  },
  {
    // Fri Nov 27 09:00:00 2026; a day of one digit stands behind a space
    pattern: new RegExp(`^\\w{3} (?<month>\\w{3}) (?<day>[ \\d]\\d) ${clockTime} (?<year>\\d{4})$`),
    write: (date) =>
      `${days[date.getUTCDay()]?.slice(0, 3)} ${monthOf(date)} ${String(date.getUTCDate()).padStart(2)} ${timeOf(date)} ${date.getUTCFullYear()}`,
  },
];

/** Milliseconds since 1970; null if the text is not an HTTP-date. `now`: a year of two digits is at most 50 years after it. */
export function readHttpDate(text: string, now: number): number | null {
  for (const { pattern, write } of forms) {
    const parts = pattern.exec(text)?.groups;
    if (!parts) continue;
    const year = fullYear(parts["year"] ?? "", now);
    const month = months.indexOf(parts["month"] ?? "");
    const [day, h, m, s] = ["day", "h", "m", "s"].map((name) => Number(parts[name]));
    const date = new Date(Date.UTC(year, month, day, h, m, s));
    return year >= 1000 && month >= 0 && write(date) === text ? date.getTime() : null;
  }
  return null;
}

function fullYear(text: string, now: number): number {
  if (text.length === 4) return Number(text);
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(text);
  return year > thisYear + 50 ? year - 100 : year;
}

const two = (number: number): string => String(number).padStart(2, "0");
const monthOf = (date: Date): string => months[date.getUTCMonth()] ?? "";
const timeOf = (date: Date): string =>
  [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map(two).join(":");
