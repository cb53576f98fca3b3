// DNS records to publish: for a person who copies them into a form, and as lines of a zone file
// (RFC 1035 §5): names absolute, TXT values in strings of at most 255 bytes.
import type { Cli } from "./cli.ts";
import type { Row } from "./output.ts";
import { cell } from "./text.ts";

/** Values in full, each on a line of its own: they are there to be copied. */
export function showRecords(cli: Cli, records: Row[]): void {
  for (const record of records) {
    const { type, name, purpose, required, status, value, issue } = record;
    const facts = [purpose, required === true ? "required" : "optional", status]
      .map(cell)
      .filter((fact) => fact !== "");
    cli.out.line(`${cell(type)}  ${cell(name)}  (${facts.join(", ")})`);
    cli.out.line(`     ${cell(value)}`);
    if (typeof issue === "string") cli.out.line(`     ${issue}`);
  }
}

export function zoneLines(records: Row[]): string {
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
