// `svc webhooks verify` and what of it needs files, standard input and the daemon. The causes: test/webhooks/verify.test.ts.
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ManualClock } from "../support/clock.ts";
import { fakeDaemon, page, scratch, svc, type World } from "./world.ts";

const secret = "s".repeat(64);
const event = { event: "message.bounced", event_id: `evt_${"0".repeat(26)}`, data: { to: "ann@x.example" } };
const body = JSON.stringify(event);
const at = Math.floor(new ManualClock().now() / 1000);
const signed = (key = secret): string[] => [
  `X-Svc-Timestamp: ${at}`,
  `X-Svc-Signature: sha256=${createHmac("sha256", key).update(`${at}.`).update(body).digest("hex")}`,
];

function files(
  headers: string[],
  text = body,
): { verify: (world?: World, ...flags: string[]) => ReturnType<typeof svc> } {
  const folder = scratch();
  const path = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const args = [
    "webhooks",
    "verify",
    path("body.json", text),
    "--headers",
    path("headers.txt", ["POST /hooks HTTP/1.1", ...headers, ""].join("\r\n")),
    "--secret-file",
    path("secret", `${secret}\n`),
  ];
  return { verify: (world = {}, ...flags) => svc([...args, ...flags], world) };
}

test("a good request is exit 0, from files and from standard input with the secret of the environment", async () => {
  expect(await files(signed()).verify()).toEqual({ code: 0, out: "valid\n", err: "" });
  const [time = "", signature = ""] = signed();
  const args = ["--json", "webhooks", "verify", "--header", time, "--header", signature];
  const piped = await svc(args, { stdin: body, env: { SVC_WEBHOOK_SECRET: secret } });
  expect(piped).toMatchObject({ code: 0, out: '{"valid":true,"findings":[]}\n' });
});

test("a refused one is exit 7 and says why; --at is the receiver's clock", async () => {
  const clock = new ManualClock();
  await clock.advance(3_600_000);
  const late = await files(signed()).verify({ clock });
  expect(late).toMatchObject({ code: 7 });
  expect(late.out).toContain("X-Svc-Timestamp: the request was signed 3600 seconds ago");
  expect(await files(signed()).verify({ clock }, "--at", "1h")).toMatchObject({ code: 0 });
});

test("whether body or secret is wrong, the daemon knows by the event as it was sent", async () => {
  const { socket } = await fakeDaemon({ "GET /v1/events": page([{ ...event, deliveries: [] }]) });
  const other = await files(signed("x".repeat(64))).verify({ socket });
  expect(other.out).toContain(`the body is that of ${event.event_id} as it was sent`);
  const changed = await files(signed(), body.replace("ann@", "bob@")).verify({ socket }, "--json");
  expect(JSON.parse(changed.out)).toMatchObject({ findings: [{ cause: "body_changed" }] });
  expect(changed.out).toContain("from byte");
  const alone = await files(signed("x".repeat(64))).verify({ socket: join(scratch(), "none") });
  expect(alone).toMatchObject({ code: 7 });
  expect(alone.out).toContain("could not be compared: no daemon answers");
});

test("without secret or headers, and with a line that is none, it is exit 2 and says what to give", async () => {
  const [line = ""] = signed();
  expect((await svc(["webhooks", "verify", "--header", line])).err).toContain("--secret-file");
  const env = { SVC_WEBHOOK_SECRET: secret };
  expect(await svc(["webhooks", "verify"], { env })).toMatchObject({ code: 2, out: "" });
  expect((await svc(["webhooks", "verify", "--header", "no header"], { env })).err).toContain('"no header"');
});

test("a body that is not there is named before anything else that is missing", async () => {
  const ran = await svc(["webhooks", "verify", join(scratch(), "none.json")]);
  expect(ran).toMatchObject({ code: 2, err: expect.stringContaining("the file does not exist") });
});
