// Which servers are asked.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parseServer, showServer, systemServers } from "../../src/dns/servers.ts";
import { removeFolder } from "../support/folders.ts";

test("reads addresses with and without a port", () => {
  const shown = ["192.0.2.1", "127.0.0.1:5353", "2001:db8::1", "[::1]:5353", "[::1]"].map((text) => {
    const server = parseServer(text);
    return server && showServer(server);
  });
  expect(shown).toEqual(["192.0.2.1:53", "127.0.0.1:5353", "[2001:db8::1]:53", "[::1]:5353", "[::1]:53"]);
});

test.each([
  "",
  "dns.example",
  "192.0.2.1:0",
  "192.0.2.1:70000",
  "192.0.2",
  "[192.0.2.1]:53",
  "192.0.2.1:53:53",
])("%j is not a server", (text) => {
  expect(parseServer(text)).toBeNull();
});

test("the system's servers are the first three of resolv.conf, this machine where it names none", () => {
  const folder = mkdtempSync(join(tmpdir(), "svc-resolv-"));
  try {
    const file = join(folder, "resolv.conf");
    writeFileSync(
      file,
      "# made by hand\nsearch test\nnameserver 192.0.2.1\n nameserver 2001:db8::1 # six\nnameserver nonsense\nnameserver 192.0.2.3\nnameserver 192.0.2.4\n",
    );
    expect(systemServers(file).map(showServer)).toEqual(["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
    expect(systemServers(join(folder, "none")).map(showServer)).toEqual(["127.0.0.1:53"]);
  } finally {
    removeFolder(folder);
  }
});
