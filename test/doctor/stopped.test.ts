// What the doctor says of a service that does not run: its ports, its unit, its database, and what only a running one knows.
import { createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import type { ClosedListener, World } from "../../src/doctor/check.ts";
import { checks } from "../../src/doctor/doctor.ts";
import { closedPorts } from "../../src/doctor/ports.ts";
import { unitOf } from "../../src/doctor/unit.ts";
import { healthy } from "./world.ts";

const run = async (id: string, more: Partial<World>) => {
  const check = checks.find((one) => one.id === id);
  if (!check) throw new Error(`no check ${id}`);
  return check.run(healthy({ running: false, ...more }));
};

async function takenPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

const http = (port: number, host = "127.0.0.1") => ({ name: "http", listen: { host, port } });

test("a port that another program has is found, and one that is free is left free", async () => {
  const port = await takenPort();
  const taken = await closedPorts([http(port), http(0)]);
  expect(taken).toMatchObject([{ name: "http", kind: "taken", listen: { port } }]);
  expect(await run("ports", { closedListeners: () => Promise.resolve(taken) })).toMatchObject({
    status: "fail",
    saw: `http on 127.0.0.1:${port}: another program has the port`,
    why: "the service does not start",
    mend: expect.stringContaining(`ss -ltnp 'sport = :${port}'`),
  });
  const free = await closedPorts([http(0), http(0)]);
  expect(free).toEqual([]);
  const listeners = [http(1), http(2)];
  const closedListeners = () => Promise.resolve(free);
  expect(await run("ports", { listeners, closedListeners })).toMatchObject({
    status: "ok",
    saw: "2 are free",
  });
});

test("a taken port of the ACME server's checks stops no start, but certificates", async () => {
  const port = await takenPort();
  const taken = await closedPorts([{ name: "acme", listen: { host: "127.0.0.1", port } }]);
  expect(await run("ports", { closedListeners: () => Promise.resolve(taken) })).toMatchObject({
    status: "fail",
    why: expect.stringContaining("certificates are not ordered"),
    mend: expect.stringContaining("/.well-known/acme-challenge/"),
  });
});

test("beside ports that this user may not open, one of the ACME server's checks still stops no start", async () => {
  const port = await takenPort();
  const taken = await closedPorts([{ name: "acme", listen: { host: "127.0.0.1", port } }]);
  const closed = [
    { ...http(443), kind: "forbidden" as const, why: "this user may not open the port" },
    ...taken,
  ];
  expect(await run("ports", { closedListeners: () => Promise.resolve(closed) })).toMatchObject({
    status: "fail",
    why: expect.stringContaining("certificates are not ordered"),
  });
});

test("an address that the machine does not have is the configuration's fault", async () => {
  const closed = await closedPorts([http(0, "192.0.2.1")]);
  expect(closed).toMatchObject([{ kind: "failed", why: "this machine does not have the address" }]);
  expect(await run("ports", { closedListeners: () => Promise.resolve(closed) })).toMatchObject({
    status: "fail",
    mend: expect.stringContaining("svc.yaml"),
  });
});

test("a port that this user may not open says nothing of the service's user", async () => {
  const forbidden: ClosedListener[] = [
    {
      name: "inbound",
      listen: { host: "::", port: 25 },
      kind: "forbidden",
      why: "this user may not open the port",
    },
  ];
  expect(await run("ports", { closedListeners: () => Promise.resolve(forbidden) })).toMatchObject({
    status: "unknown",
    saw: "inbound on [::]:25: this user may not open the port",
    mend: "run it as root",
  });
});

test.each([
  ["enabled", "inactive", "success", 0, "ok", "enabled, inactive"],
  ["enabled", "failed", "exit-code", 78, "fail", "the last run ended with exit-code, status 78"],
  ["disabled", "inactive", "success", 0, "warn", "disabled, inactive"],
  ["masked", "inactive", "success", 0, "warn", "masked, inactive"],
])("a unit that is %s, %s (%s %i) is %s", async (enabled, active, result, exitStatus, status, saw) => {
  const unit = () => Promise.resolve({ enabled, active, result, exitStatus });
  expect(await run("unit", { unit })).toMatchObject({ status, saw });
});

test("a unit that failed before says nothing against a service that runs; none at all is right", async () => {
  const unit = () =>
    Promise.resolve({ enabled: "enabled", active: "active", result: "watchdog", exitStatus: 0 });
  expect(await run("unit", { unit, running: true })).toMatchObject({ status: "ok" });
  expect(await run("unit", { unit: () => Promise.resolve(null) })).toMatchObject({ status: "ok" });
});

test("what systemctl shows is read; a unit that is not there is none", () => {
  const shown =
    "LoadState=loaded\nUnitFileState=disabled\nActiveState=failed\nResult=signal\nExecMainStatus=9\n";
  expect(unitOf(shown)).toEqual({ enabled: "disabled", active: "failed", result: "signal", exitStatus: 9 });
  expect(unitOf("LoadState=not-found\nUnitFileState=\nActiveState=inactive\nResult=success\n")).toBeNull();
  expect(unitOf("")).toBeNull();
});

test("what only a running service has is not checkable", async () => {
  for (const id of ["listeners", "open-files"]) expect((await run(id, {})).status, id).toBe("unknown");
});

test("a certificate that a start would refuse fails, and one that a start makes is none to worry about", async () => {
  const own = { name: "mail.acme.example", isHost: true, renewAt: null, isGivenUp: false };
  const error = "/etc/svc/host.crt cannot be read: ENOENT";
  const certificates = () => Promise.resolve([{ ...own, error }]);
  expect(await run("certificate", { tlsMode: "files", certificates })).toMatchObject({
    status: "fail",
    saw: error,
    why: "the service does not start",
  });
  const none = () => Promise.resolve([{ ...own, error: null }]);
  expect(await run("certificate", { tlsMode: "self-signed", certificates: none })).toMatchObject({
    status: "ok",
    saw: expect.stringContaining("there is none yet"),
  });
});
