// Changes one option in the text of svc.yaml, and leaves comments, order and every other line as they are.
import { isMap, isScalar, parseDocument } from "yaml";
import { fromText } from "./layers.ts";
import type { OptionPath } from "./options.ts";

/** True of a text that has comments at most. */
export function setsNothing(text: string): boolean {
  return parseDocument(text, { prettyErrors: false }).contents === null;
}

/** The text with `path` set to what an operator wrote, or without it where that is null. Throws where it is not YAML, or a section is not a map. */
export function withOption(text: string, path: OptionPath, value: string | null): string {
  const document = parseDocument(text, { prettyErrors: false });
  const [fault] = document.errors;
  if (fault) throw new Error(fault.message);
  const keys = path.split(".");
  keys.slice(0, -1).forEach((_, at) => {
    const section = keys.slice(0, at + 1);
    const node = document.getIn(section, true);
    if (isScalar(node) && node.value === null) document.setIn(section, document.createNode({}));
    else if (node !== undefined && !isMap(node)) throw new Error(`${section.join(".")} is not a section`);
  });
  if (value !== null) document.setIn(keys, document.createNode(fromText(path, value)));
  else if (document.hasIn(keys)) document.deleteIn(keys);
  return document.toString({ lineWidth: 0 });
}
