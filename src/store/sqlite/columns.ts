// Column lists of statements, made of a table of schema/: a column that is added there is read and written everywhere.
import type { Column } from "drizzle-orm";

type Columns = Readonly<Record<string, Column>>;

/** `key, account_key AS accountKey, …`: the columns under the names that records have them by. */
export function selected(columns: Columns): string {
  return Object.entries(columns)
    .map(([name, column]) => (column.name === name ? name : `${column.name} AS ${name}`))
    .join(", ");
}

/** `(account_key, …) VALUES (@accountKey, …)`. */
export function inserted(columns: Columns): string {
  const entries = Object.entries(columns);
  const names = entries.map(([, column]) => column.name).join(", ");
  return `(${names}) VALUES (${entries.map(([name]) => `@${name}`).join(", ")})`;
}

/** `account_key = @accountKey, …`. */
export function assigned(columns: Columns): string {
  return Object.entries(columns)
    .map(([name, column]) => `${column.name} = @${name}`)
    .join(", ");
}
