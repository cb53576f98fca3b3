// Column lists of statements, made of a table of schema/: a column that is added there is read and written everywhere.
import type { Column } from "drizzle-orm";

type Columns = Readonly<Record<string, Column>>;
type Cells = Readonly<Record<string, unknown>>;

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

/** What of a record are values of these columns, as SQLite takes them. What is undefined is left out. */
export function cellsOf(columns: Columns, record: object): Cells {
  return Object.fromEntries(
    Object.entries(record).flatMap(([name, value]: [string, unknown]) => {
      const column = columns[name];
      if (column === undefined || value === undefined) return [];
      return [[name, value === null ? null : column.mapToDriverValue(value)]];
    }),
  );
}

/** The columns that `cells` has values of. */
export function only(columns: Columns, cells: Cells): Columns {
  return Object.fromEntries(Object.entries(columns).filter(([name]) => name in cells));
}

/** A row as `selected` reads it, as a record: to SQLite a boolean is a number, and a structure is its JSON. */
export function recordOf<Row extends object>(columns: Columns, row: Row): Row {
  const read = Object.entries(row).flatMap(([name, value]: [string, unknown]) => {
    const column = columns[name];
    const differs = column?.dataType === "boolean" || column?.dataType === "json";
    return differs && value !== null ? [[name, column.mapFromDriverValue(value)]] : [];
  });
  return { ...row, ...Object.fromEntries(read) };
}

/** What a row has of these columns before anything is said of it. */
export function unsaid(columns: Columns): Cells {
  return cellsOf(
    columns,
    Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column.default ?? null])),
  );
}
