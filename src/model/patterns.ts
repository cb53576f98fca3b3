// The glob filters that lists of messages and events share: in each, an asterisk stands for any text.

export const patternNames = [
  "toLike",
  "fromLike",
  "tagLike",
  "domain",
  "ip",
  "pool",
  "type", // of an event
  "code",
  "enhanced",
  "key", // an API key's id
] as const;
export type PatternName = (typeof patternNames)[number];

/** In lower case; all that concern one recipient have the same one. */
export type Patterns = Partial<Record<PatternName, string>>;
