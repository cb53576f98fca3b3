// HTTP-date (RFC 9110 §5.6.7): the one form that is written, and the two old ones that are still read. The platform reads
// far more than these; a date counts only where it is the very text that its moment would be written as: right weekday, a
// day that exists, its case kept.

const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** Milliseconds since 1970; null if the text is not an HTTP-date. A year of two digits is one of 1950 to 2049. */
export function readHttpDate(text: string): number | null {
  // asctime's form names no zone.
  const date = new Date(text.endsWith(" GMT") ? text : `${text} GMT`);
  return !Number.isNaN(date.getTime()) && formsOf(date).includes(text) ? date.getTime() : null;
}

function formsOf(date: Date): string[] {
  // Fri, 27 Nov 2026 09:00:00 GMT
  const form = date.toUTCString();
  const [weekday = "", day = "", month = "", year = "", time = ""] = form.replace(",", "").split(" ");
  return [
    form,
    // Friday, 27-Nov-26 09:00:00 GMT
    `${days[date.getUTCDay()]}, ${day}-${month}-${year.slice(2)} ${time} GMT`,
    // Fri Nov 27 09:00:00 2026; a day of one digit stands behind a space
    `${weekday} ${month} ${day.replace(/^0/, " ")} ${time} ${year}`,
  ];
}
