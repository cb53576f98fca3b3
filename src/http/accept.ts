// What a client wants to be answered in (RFC 9110 §12.5.1). JSON is what comes unless another type is named:
// a wildcard does not ask for anything else.

/** True where the header names the media type, and not to refuse it. */
export function accepts(accept: string | undefined, mediaType: string): boolean {
  return weightOf(accept, mediaType) > 0;
}

/** The same, and JSON is not named with a higher weight. */
export function prefers(accept: string | undefined, mediaType: string): boolean {
  return accepts(accept, mediaType) && weightOf(accept, mediaType) >= weightOf(accept, "application/json");
}

/** From 0 to 1; 0 where the type is not named. */
function weightOf(accept: string | undefined, mediaType: string): number {
  const weights = (accept ?? "").split(",").flatMap((part) => {
    const [type = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    if (type !== mediaType) return [];
    const q = parameters.find((parameter) => parameter.startsWith("q="));
    const weight = q === undefined ? 1 : Number(q.slice(2));
    return weight >= 0 && weight <= 1 ? [weight] : [];
  });
  return Math.max(0, ...weights);
}
