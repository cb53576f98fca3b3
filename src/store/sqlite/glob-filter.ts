// The operator's filters, in which an asterisk stands for any text. No index serves them: a list walks.

/** SQLite's GLOB knows more than the asterisk; all else stands for itself. */
export function globOf(text: string): string {
  return text.replace(/[?[]/g, "[$&]");
}

/** What of a filter are patterns, each turned into what GLOB takes. */
export function globsOf<K extends string>(
  filter: { readonly [name in K]?: string },
  names: readonly K[],
): Record<string, string> {
  const given = names.flatMap((name) => {
    const text = filter[name];
    return text === undefined ? [] : [[name, globOf(text)] as const];
  });
  return Object.fromEntries(given);
}
