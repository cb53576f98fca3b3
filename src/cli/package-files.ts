// Files that come with the package, beside the program: where they are.
import { join } from "node:path";

/** Two folders up from here as written, one from the bundle. */
const packageFolder = join(import.meta.dirname, import.meta.url.endsWith(".ts") ? "../.." : "..");

export const examplesFolder = join(packageFolder, "examples");
export const unitFile = join(packageFolder, "systemd/svc-mail.service");
