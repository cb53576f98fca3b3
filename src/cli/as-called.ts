// Commands that the API names in its texts, by the name that the person calls this program by.

/** The API writes `svc domains verify`; where it is called `bin/svc` or `npx svc`, that is what is to be typed. */
export function asCalled(text: string, program: string): string {
  return text.replace(/(?<![\w./-])svc(?= (?:--account |[a-z]))/g, () => program);
}
