// The writer's thread, with the commands of every noun.
import { giveBackMemory } from "../../thread.ts";
import { serveWriter } from "./engine/writer.ts";
import { createWriter } from "./writer.ts";

serveWriter(createWriter);
giveBackMemory();
