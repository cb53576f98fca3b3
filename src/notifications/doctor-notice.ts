// The operator's mail about checks of the doctor that changed.
import { createHash } from "node:crypto";
import type { Result } from "../doctor/doctor.ts";
import type { Notices } from "./notices.ts";

export async function notifyDoctor(
  notices: Pick<Notices, "notify">,
  changed: readonly Result[],
): Promise<void> {
  const names = changed.map(({ id, status }) => `${id} ${words[status]}`);
  const cause = createHash("sha256").update(names.toSorted().join()).digest("hex").slice(0, 16);
  const texts = changed.map(({ id, status, saw, why, mend }) =>
    [
      `${id} ${words[status]}: ${saw}`,
      ...(why === null ? [] : [`  why it matters: ${why}`]),
      ...(mend === null ? [] : [`  what to do: ${mend}`]),
    ].join("\n"),
  );
  await notices.notify(
    `doctor:${cause}`,
    names.join(", "),
    `${texts.join("\n\n")}\n\nAll checks: svc doctor\n`,
  );
}

const words = { ok: "is well again", warn: "needs a look", fail: "fails", unknown: "could not be checked" };
