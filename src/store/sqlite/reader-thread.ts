// The reader's thread, with the lists of every noun.
import { giveBackMemory } from "../../thread.ts";
import { serveReader } from "./engine/reader.ts";
import { prepareLists } from "./nouns.ts";

serveReader(prepareLists);
giveBackMemory();
