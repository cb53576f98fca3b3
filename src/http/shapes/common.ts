// The pieces that the shapes of answers are made of. A shape (shapes/<resource>.ts) says exactly what a body of the API
// holds: the API's description derives from it, and the function that makes the body is typed by its `z.input`, so
// that the compiler holds both together. Nothing is parsed by a shape while it is answered. What has a name in the
// description is given it by `.meta({ id })`; a list is named after what it lists.
import { z } from "zod";

export {
  count,
  emailAddress,
  idOf,
  ipAddress,
  smtpCode,
  smtpStatus,
  timestamp,
  tlsShape,
} from "../../value-schemas.ts";

/** A page of a list (paging.ts), named after what it lists. */
export function list<Of extends z.ZodType>(of: Of) {
  const page = z.strictObject({
    data: z.array(of),
    has_more: z.boolean(),
    next_cursor: z.string().nullable().meta({ description: "Given as `cursor`, it asks for the next page." }),
  });
  const name = of.meta()?.id;
  return name === undefined ? page : page.meta({ id: `${name}List` });
}

export const htmlPage = z.string().describe("A page for people.");
