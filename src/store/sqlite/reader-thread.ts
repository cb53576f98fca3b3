// The reader's thread, with the lists of every noun.
import { serveReader } from "./engine/reader.ts";
import { createReader } from "./reader.ts";

serveReader(createReader);
