// For `node --import`: a generator that is written for the API of TypeScript 5 gets that, beside the compiler that checks
// this code, whose API is another.
import { registerHooks } from "node:module";

registerHooks({
  resolve: (specifier, context, next) =>
    next(specifier === "typescript" ? "typescript5" : specifier, context),
});
