// DNS records as lines of a zone file (RFC 1035 §5): names absolute, TXT values in strings of at
// most 255 bytes.
import { cell } from "./text.ts";

export function zoneLines(records: Record<string, unknown>[]): string {
  return records
    .map((record) => {
      const [type, name, value] = [record["type"], record["name"], record["value"]].map(cell);
      return `${absolute(name ?? "")}\t3600\tIN\t${type}\t${type === "TXT" ? strings(value ?? "") : absolute(value ?? "")}`;
    })
    .join("\n");
}

function absolute(name: string): string {
  return name.endsWith(".") ? name : `${name}.`;
}

function strings(value: string): string {
  const escaped = value.replace(/[\\"]/g, (character) => `\\${character}`);
  const parts = escaped.match(/(?:\\.|[^\\]){1,120}/g) ?? [""];
  return parts.map((part) => `"${part}"`).join(" ");
}
