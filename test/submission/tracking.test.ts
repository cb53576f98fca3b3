// What REST and SMTP make of a request to be tracked: what is kept with the message, what is refused, which fields are added.
import { describe, expect, test } from "vitest";
import { parseHeaderSection } from "../../src/mail/header.ts";
import type { SenderDomain } from "../../src/model/domain.ts";
import { good, makeDomain, makeRig, refusalOf, rowsOf, type Rig } from "./rig.ts";

const mail = (...lines: string[]): string =>
  ["From: shop@ok.test", "Subject: s", ...lines, "", "Hi", ""].join("\r\n");

function rigWith(over: Partial<SenderDomain>): Rig {
  const rig = makeRig();
  rig.domains.set("ok.test", makeDomain("ok.test", over));
  return rig;
}

/** By REST and by SMTP; `header` is the latter's form of it. */
async function keptOf(over: Partial<SenderDomain>, fields: Record<string, unknown>, ...header: string[]) {
  const rig = rigWith(over);
  await rig.send(good(fields));
  const rest = rig.store.last().message.tracking;
  await rig.relay(mail(...header));
  expect(rig.store.last().message.tracking).toEqual(rest);
  return rest;
}

const none = { opens: false, clicks: false, unsubscribe: false };
const enabled = { trackingEnabled: true };

test("nothing is tracked that nobody asked for", async () => {
  expect(await keptOf({}, {})).toBeNull();
  expect(await keptOf(enabled, {})).toBeNull();
  expect(await keptOf({ trackOpens: true, trackClicks: true }, {})).toBeNull();
});

test("what a message does not say is as its domain has it, once tracking is enabled", async () => {
  const on = { ...enabled, trackOpens: true, trackClicks: true };
  expect(await keptOf(on, {})).toEqual({ ...none, opens: true, clicks: true });
  expect(await keptOf(on, { track_opens: false }, "X-Svc-Track-Opens: False")).toEqual({
    ...none,
    clicks: true,
  });
  expect(
    await keptOf(
      on,
      { tracking: { opens: false, clicks: false } },
      "X-Svc-Track-Opens: false",
      "X-Svc-Track-Clicks: false",
    ),
  ).toBeNull();
  expect(await keptOf(enabled, { track_clicks: true }, "X-Svc-Track-Clicks: TRUE")).toEqual({
    ...none,
    clicks: true,
  });
});

test("a message that asks for what its domain has off is refused; a page to unsubscribe is no tracking", async () => {
  const asked = { track_opens: true, tracking: { clicks: true } };
  expect(rowsOf(await refusalOf(makeRig().send(good(asked))))).toEqual([
    "track_opens tracking_disabled",
    "tracking.clicks tracking_disabled",
  ]);
  const relayed = mail("X-Svc-Track-Opens: true", "X-Svc-Track-Clicks: true");
  const refusal = await refusalOf(makeRig().relay(relayed));
  expect(rowsOf(refusal)).toEqual([
    "X-Svc-Track-Opens tracking_disabled",
    "X-Svc-Track-Clicks tracking_disabled",
  ]);
  expect(refusal.message).toContain("svc domains tracking set ok.test");
  expect(await keptOf({}, { track_opens: false })).toBeNull();
  expect(await keptOf({}, { unsubscribe: true }, "X-Svc-Unsubscribe: true")).toEqual({
    ...none,
    unsubscribe: true,
  });
});

describe("a way to unsubscribe of the sender's own", () => {
  const unsubscribe = { url: "https://x.test/u?1", mailto: "u@ok.test" };
  const fieldsOf = (rig: Rig) =>
    parseHeaderSection(rig.store.bytes().subarray(0, rig.store.last().message.headerLength))
      .filter(({ lower }) => lower.startsWith("list-"))
      .map(({ name, value }) => `${name}: ${value}`);

  test("is written into the message, the same for all recipients", async () => {
    const expected = [
      "List-Unsubscribe: <https://x.test/u?1>, <mailto:u@ok.test>",
      "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    ];
    const rig = makeRig();
    await rig.send(good({ unsubscribe }));
    expect([rig.store.last().message.tracking, fieldsOf(rig)]).toEqual([null, expected]);
    await rig.relay(mail(`X-Svc-Unsubscribe: ${JSON.stringify(unsubscribe)}`));
    expect([rig.store.last().message.tracking, fieldsOf(rig)]).toEqual([null, expected]);
    expect(rig.store.bytes().toString()).toContain("One-Click\r\n\r\nHi\r\n");
  });

  test("by mail alone promises no page that takes a POST", async () => {
    const rig = makeRig();
    await rig.send(good({ unsubscribe: { mailto: "u@ok.test" } }));
    expect(fieldsOf(rig)).toEqual(["List-Unsubscribe: <mailto:u@ok.test>"]);
  });

  test("is refused beside a field that the mail has already", async () => {
    const lines = [
      "List-Unsubscribe: <https://x.test/>",
      "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
    ];
    await makeRig().relay(mail(...lines));
    for (const value of ["true", JSON.stringify(unsubscribe)])
      expect(rowsOf(await refusalOf(makeRig().relay(mail(...lines, `X-Svc-Unsubscribe: ${value}`))))).toEqual(
        ["List-Unsubscribe validation_failed", "List-Unsubscribe-Post validation_failed"],
      );
  });
});
