// The pieces that the schemas of answers are made of. A schema (resources/<noun>.ts) says exactly what a body of the API
// holds: the API's description derives from it, and so does the view that makes the body of a record (codec.ts), so that
// the compiler checks them against each other. No answer is parsed by its schema. A schema that has a name in the description is
// given it by `.meta({ id })`; a list is named after what it lists.
import { z } from "zod";

/** A reply code as it is shown. */
export function replyCode({ smtpCode: code }: { readonly smtpCode: number | null }): string | null {
  return code === null ? null : String(code);
}

/** A page of a list (paging.ts), named after what it lists. */
export function list<Of extends z.ZodType>(of: Of) {
  const page = z.strictObject({
    data: z.array(of),
    has_more: z.boolean(),
    next_cursor: z.string().nullable().meta({ description: "Pass it as `cursor` to get the next page." }),
  });
  const name = of.meta()?.id;
  return name === undefined ? page : page.meta({ id: `${name}List` });
}

export const htmlPage = z.string().describe("A page for browsers.");
