// Which files the configuration is read from: the system's svc.yaml, then conf.d/*.yaml
// in the order of names, then the user's file; each one outdoes those before it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileLayer, type ConfigFault, type Layer } from "./layers.ts";
import type { Places } from "./places.ts";

/** Text of a file; null where there is none. Throws where it cannot be read. */
export type ReadFile = (path: string) => string | null;

/** Text of a file, null where there is none. */
export function readTextFile(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

function listDirectory(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** Layers by falling precedence, files as they were read. `only` is read in place of all the others. */
export function fileLayers(
  request: { only: string | undefined; readFile?: ReadFile; listDir?: (path: string) => string[] },
  places: Places,
): { layers: Layer[]; files: string[]; faults: ConfigFault[] } {
  const readFile = request.readFile ?? readTextFile;
  const { only } = request;
  const parts = (request.listDir ?? listDirectory)(places.systemConfigDir)
    .filter((name) => name.endsWith(".yaml") && !name.startsWith("."))
    .toSorted();
  const wanted =
    only !== undefined
      ? [only]
      : [places.systemConfig, ...parts.map((name) => join(places.systemConfigDir, name)), places.userConfig];
  const layers: Layer[] = [];
  const files: string[] = [];
  const faults: ConfigFault[] = [];
  for (const file of wanted) {
    if (file === null) continue;
    try {
      const text = readFile(file);
      if (text !== null) {
        files.push(file);
        layers.unshift(fileLayer(file, text));
      } else if (only !== undefined) faults.push(fileFault(file, "no file"));
    } catch (error) {
      faults.push(
        fileFault(
          file,
          `a file that cannot be read (${error instanceof Error ? error.message : String(error)})`,
        ),
      );
    }
  }
  return { layers, files, faults };
}

function fileFault(file: string, found: string): ConfigFault {
  return { source: file, line: null, path: "", found, expected: "a readable svc.yaml" };
}
