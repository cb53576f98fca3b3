// Text from outside, as every engine can store it: without NUL, which ends a text in one engine and is refused by another,
// and without lone surrogates, which no UTF-8 holds. Both become U+FFFD, in JSON text their escapes too, so that what is
// stored can be read by the engine's own JSON functions. It is done where a call is packed, before its transaction.
import type { Store } from "./store.ts";

const replacement = "\ufffd";

export function storable(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll("\0", replacement);
}

const isStorableText = (text: string): boolean => text.isWellFormed() && !text.includes("\0");

export const storableOrNull = (text: string | null): string | null => (text === null ? null : storable(text));

/** An escape of JSON, a pair of surrogates as one. */
const escape = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^u])/g;
const unfit = /^\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})$/;

/** The same of JSON text as JSON.stringify writes it, where both stand as escapes; all else within it stays. */
export function storableJson(json: string): string {
  if (!json.includes("\\u")) return json;
  return json.replace(escape, (found) => (unfit.test(found) ? replacement : found));
}

/** Every text of a plain value, names of members too; the value itself where there is nothing to replace. */
export function withStorableText<T>(value: T): T {
  return storableValue(value) as T;
}

function storableValue(value: unknown): unknown {
  if (isStorable(value)) return value; // nearly always
  if (typeof value === "string") return storable(value);
  if (Array.isArray(value)) return value.map(storableValue);
  return Object.fromEntries(
    Object.entries(value as object).map(([name, member]) => [storable(name), storableValue(member)]),
  );
}

/** There is nothing to replace in it. */
function isStorable(value: unknown): boolean {
  if (typeof value === "string") return isStorableText(value);
  if (typeof value !== "object" || value === null) return true;
  if (Array.isArray(value)) return value.every(isStorable);
  if (Object.getPrototypeOf(value) !== Object.prototype) return true; // bytes, a stream: no text
  const members = value as Record<string, unknown>;
  for (const name in members) if (!isStorableText(name) || !isStorable(members[name])) return false;
  return true;
}

/** They are flat or large, and pack their texts one by one. */
const packOwnText: ReadonlySet<string> = new Set<keyof Store>(["acceptMessage", "acceptMessages", "settle"]);

/** The store, its arguments made storable. */
export function storingText(store: Store): Store {
  const calls = Object.entries(store).map(([name, call]: [string, (...args: unknown[]) => unknown]) => [
    name,
    packOwnText.has(name) ? call : (...args: unknown[]) => call(...args.map(storableValue)),
  ]);
  return Object.fromEntries(calls) as Store;
}
