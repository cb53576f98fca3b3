// The backup's thread: one copy, then it ends.
import { serveBackup } from "./backup-copy.ts";

await serveBackup();
