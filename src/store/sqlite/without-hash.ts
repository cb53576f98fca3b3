// The columns of what is found by the hash of a secret, as they are shown.
import { getTableColumns } from "drizzle-orm";
import type { apiKeys, smtpCredentials } from "./schema/accounts.ts";

/** The columns of a table without the hash that its rows are found by. */
export function withoutHash<T extends typeof apiKeys | typeof smtpCredentials>(table: T) {
  const { hash: _hash, ...columns } = getTableColumns(table);
  return columns;
}
