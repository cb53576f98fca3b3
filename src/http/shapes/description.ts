// What the API's description of itself is answered as.
import { z } from "zod";

export const documentShape = z
  .looseObject({ openapi: z.string(), info: z.looseObject({ title: z.string(), version: z.string() }) })
  .meta({ id: "Description" });

export const scriptText = z.string().describe("A script for browsers.");
