// Flags of commands, noted at the fields of a body: `npm run docs` writes those of each route into cli/route-flags.ts, since a
// command that loaded the API's schemas would load longer than its request takes.
import { z } from "zod";

export interface FlagNote {
  /** `--description <text>` */
  flag: string;
  about: string;
}

export const flagNotes = z.registry<FlagNote>();
export type RouteFlag = FlagNote & { member: string };

/** The flags of a body's fields, in the order of its schema. */
export function flagsOf(body: unknown): RouteFlag[] {
  if (!(body instanceof z.ZodObject)) return [];
  return Object.entries(body.shape).flatMap(([member, field]) => {
    const note = noteOf(field);
    return note === undefined ? [] : [{ ...note, member }];
  });
}

/** A field may be optional, or have a default, where its note is. */
function noteOf(field: unknown): FlagNote | undefined {
  if (!(field instanceof z.ZodType)) return undefined;
  const note = flagNotes.get(field);
  if (note !== undefined) return note;
  return field instanceof z.ZodOptional || field instanceof z.ZodDefault ? noteOf(field.unwrap()) : undefined;
}
