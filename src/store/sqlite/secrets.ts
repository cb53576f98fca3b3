// Secrets of this installation, made at first use, and the small write that tries whether the store takes any.
import { randomBytes } from "node:crypto";
import type { Database, Statement } from "better-sqlite3";
import { eq, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/better-sqlite3";
import { nothing } from "../changes.ts";
import type { EngineStore } from "../interface/engine.ts";
import { none, noun } from "./noun.ts";
import { secrets as table } from "./schema/appliance.ts";

function createSecretWrites(db: Database) {
  const insertSecret = db.prepare(
    "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
  );
  const findSecret: Statement<[string], { value: Buffer }> = db.prepare(
    "SELECT value FROM secrets WHERE name = ?",
  );
  const probe = db.prepare("INSERT OR REPLACE INTO probe (key, bytes) VALUES (1, zeroblob(65536))");
  return {
    secret(arg: { name: string }): Uint8Array {
      insertSecret.run(arg.name, randomBytes(32));
      const row = findSecret.get(arg.name);
      if (!row) throw new Error("a secret that was just written is not there");
      return new Uint8Array(row.value);
    },
    /** Writes a little: the answer to whether writing works again. */
    probe(): void {
      probe.run();
    },
  };
}

function createSecretLookups(client: Database) {
  const secretByName = drizzle({ client })
    .select()
    .from(table)
    .where(eq(table.name, sql.placeholder("name")))
    .prepare();
  return { secret: (name: string) => secretByName.get({ name })?.value ?? null };
}

export const secrets = noun({
  commands: createSecretWrites,
  touches: { secret: nothing, probe: nothing },
  lookups: createSecretLookups,
  lists: none,
  calls: ({ write, lookups }): Pick<EngineStore, "secret"> => ({
    secret: async (name) => lookups.secret(name) ?? (await write.secret({ name })),
  }),
});
