import { expect, test } from "vitest";
import { devConfig, faultText, loadConfig, type Config, type ConfigRequest } from "../src/config.ts";
import { environmentName, optionPaths } from "../src/config/options.ts";
import { rateTable } from "../src/access/buckets.ts";
import { parseSpan, spanText } from "../src/config/span.ts";
import { bucketNames } from "../src/model/limits.ts";

const system = "/etc/svc/svc.yaml";
const user = "/home/ann/.config/svc/svc.yaml";

function request(files: Record<string, string>, over: Partial<ConfigRequest> = {}): ConfigRequest {
  return {
    flags: {},
    env: {},
    home: "/home/ann",
    uid: 1000,
    machineName: "mail.acme.example",
    readFile: (path) => files[path] ?? null,
    listDir: (dir) =>
      Object.keys(files)
        .filter((path) => path.startsWith(`${dir}/`))
        .map((path) => path.slice(dir.length + 1)),
    ...over,
  };
}

function load(files: Record<string, string>, over?: Partial<ConfigRequest>): Config {
  const result = loadConfig(request(files, over));
  if ("faults" in result) throw new Error(result.faults.map(faultText).join("\n"));
  return result.config;
}

function faults(text: string, over?: Partial<ConfigRequest>, more: Record<string, string> = {}): string[] {
  const result = loadConfig(request({ [user]: text, ...more }, over));
  return "faults" in result ? result.faults.map(faultText) : [];
}

test("a file with only a host name runs, on ports that a plain user may open", () => {
  const config = load({ [user]: "hostname: mail.acme.example\n" });
  expect(config.publicUrl).toBe("https://mail.acme.example:8443");
  expect(config.http.listen).toEqual([{ host: "::", port: 8443 }]);
  expect(
    [...config.relay.starttls, ...config.relay.implicitTls].map((one) => "port" in one && one.port),
  ).toEqual([8587, 8525, 8465]);
  expect(config.dataDir).toBe("/home/ann/.local/share/svc");
  expect(config.socket).toBe("/home/ann/.local/share/svc/admin.sock");
  expect(config.tls.mode).toBe("self-signed");
  expect(config.outbound.retryMs).toEqual([
    60_000, 300_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000,
  ]);
  expect(config.webhooks.scheduleMs).toHaveLength(9);
  expect(config.limits.minFreeSpaceShare).toBe(0.05);
});

test.each([
  ["root", { uid: 0, env: {} }, "/var/lib/svc", "/run/svc/admin.sock"],
  [
    "a systemd unit",
    { uid: 990, env: { STATE_DIRECTORY: "/srv/svc", RUNTIME_DIRECTORY: "/run/svc-mail" } },
    "/srv/svc",
    "/run/svc-mail/admin.sock",
  ],
])("%s gets the standard ports and the system's directories", (_who, who, dataDir, socket) => {
  const config = load({ [system]: "hostname: mail.acme.example" }, who);
  expect(config.http.listen).toEqual([{ host: "::", port: 443 }]);
  expect(config.publicUrl).toBe("https://mail.acme.example");
  expect([config.dataDir, config.socket]).toEqual([dataDir, socket]);
});

test("a plain user's directories follow the XDG variables, and relative ones are ignored", () => {
  const env = { XDG_DATA_HOME: "/data", XDG_RUNTIME_DIR: "/run/user/1000", XDG_CONFIG_HOME: "relative" };
  const config = load({ [user]: "hostname: a.example" }, { env });
  expect([config.hostname, config.dataDir, config.socket]).toEqual([
    "a.example",
    "/data/svc",
    "/run/user/1000/svc/admin.sock",
  ]);
});

test("flag outdoes environment, user file, conf.d in order, system file and default", () => {
  const files: Record<string, string> = {
    [system]:
      "{hostname: a.example, data_dir: /system, outbound: {port: 1, max_age: 1h}, dns: {tries: 1}, log: {level: error}}",
    "/etc/svc/conf.d/10.yaml": "{dns: {tries: 2}, outbound: {port: 2}}",
    "/etc/svc/conf.d/20.yaml": "dns: {tries: 3}",
    "/etc/svc/conf.d/.hidden.yaml": "dns: {tries: 9}",
    [user]: "{outbound: {max_age: 2h}, log: {level: warn}, data_dir: /user}",
  };
  const config = load(files, {
    env: { SVC_LOG_LEVEL: "debug", SVC_DATA_DIR: "/env" },
    flags: { data_dir: "/flag" },
  });
  expect(config.dataDir).toBe("/flag");
  expect(config.log.level).toBe("debug");
  expect(config.outbound.maxAgeMs).toBe(7_200_000);
  expect([config.outbound.port, config.dns.tries]).toEqual([2, 3]);
  expect(config.hostname).toBe("a.example");
});

test("a named file is read in place of the others, and must be there", () => {
  const files = { [system]: "{dns: {tries: 4}, hostname: a.example}", "/x.yaml": "hostname: b.example" };
  expect(load(files, { flags: { config: "/x.yaml" } })).toMatchObject({
    hostname: "b.example",
    dns: { tries: 2 },
  });
  expect(load(files, { env: { SVC_CONFIG: "/x.yaml" } }).hostname).toBe("b.example");
  expect(faults("", { flags: { config: "/none.yaml" } })).toEqual([
    "/none.yaml: found no file, expected a readable svc.yaml",
  ]);
});

test("variables give lists with commas and structures in YAML, and empty ones count for nothing", () => {
  const env = {
    SVC_HTTP_LISTEN: "[::]:9443, 127.0.0.1:9444",
    SVC_OUTBOUND_RETRY: "10s,20s",
    SVC_RELAY_TRUSTED: "[{network: 10.0.0.0/8}]",
    SVC_LIMITS_RATES: "{messages-write: {burst: 500, per_second: 400}}",
    SVC_OUTBOUND_SIGN: "true",
    SVC_DNS_TRIES: "",
  };
  const config = load({}, { env });
  expect(config.http.listen).toEqual([
    { host: "::", port: 9443 },
    { host: "127.0.0.1", port: 9444 },
  ]);
  expect(config.outbound.retryMs).toEqual([10_000, 20_000]);
  expect(config.relay.trusted).toEqual([{ network: "10.0.0.0/8", account: "default" }]);
  expect(config.limits.rates).toEqual({ "messages-write": { burst: 500, perSecond: 400 } });
  expect(config.dns.tries).toBe(2);
});

test("a blocklist is a name or a zone with what the program does not know of it", () => {
  const zen = { zone: "zen.spamhaus.org", name: null, codes: null, removalUrl: null };
  const own = { zone: "bl.test", name: "Own", codes: ["127.0.0.2", "127.0.0.4-127.0.0.9"], removalUrl: null };
  const yaml =
    "dnsbl: {zones: [ZEN.spamhaus.org, {zone: bl.test, name: Own, codes: [127.0.0.2, 127.0.0.4-127.0.0.9]}]}";
  expect(load({ [user]: yaml }).dnsbl).toEqual({
    intervalMs: 3_600_000,
    zones: [zen, own],
    onListing: "none",
  });
  const env = { SVC_DNSBL_ZONES: "[zen.spamhaus.org]", SVC_DNSBL_ON_LISTING: "drain" };
  expect(load({}, { env }).dnsbl).toMatchObject({ zones: [zen], onListing: "drain" });
});

test("every option has a variable of its own", () => {
  expect(new Set(optionPaths.map(environmentName)).size).toBe(optionPaths.length);
});

test("rates can be set for exactly the buckets that there are", () => {
  expect([...bucketNames].toSorted()).toEqual(Object.keys(rateTable).toSorted());
});

test("the smart host's password comes from a file or from the environment, never from svc.yaml", () => {
  const yaml = "outbound: {smart_host: {host: smtp.relay.example, user: u, password_file: /pw}}";
  expect(load({ [user]: yaml, "/pw": "s3cret\n" }).outbound.smartHost).toEqual({
    host: "smtp.relay.example",
    port: 587,
    user: "u",
    password: "s3cret",
    tls: "verify",
    allowUnverifiedPassword: false,
  });
  const direct = { env: { SVC_OUTBOUND_SMART_HOST_PASSWORD: "other" } };
  expect(load({ [user]: yaml, "/pw": "s3cret" }, direct).outbound.smartHost?.password).toBe("other");
  expect(
    load({ "/pw2": "third", [user]: yaml }, { env: { SVC_OUTBOUND_SMART_HOST_PASSWORD_FILE: "/pw2" } })
      .outbound.smartHost?.password,
  ).toBe("third");
  expect(faults("outbound: {smart_host: {host: a.example, user: u, password: x}}")).toContainEqual(
    expect.stringContaining(
      "outbound.smart_host.password: found a key that svc does not know; did you mean outbound.smart_host.password_file?",
    ),
  );
});

test.each([
  ["hostname: acme", `${user}:1: hostname: found "acme", expected the full host name`],
  ['hostname: "x.example\\r\\nMAIL FROM:<a>"', `${user}:1: hostname: found`],
  ["hostname: 127.0.0.1", `${user}:1: hostname: found "127.0.0.1"`],
  ["\nhostnam: a.example", `${user}:2: hostnam: found a key that svc does not know; did you mean hostname?`],
  [
    "max_queue: 5",
    `${user}:1: max_queue: found a key that svc does not know; did you mean limits.max_queue?`,
  ],
  [
    "outbound: {maxAge: 1h}",
    "outbound.maxAge: found a key that svc does not know; did you mean outbound.max_age?",
  ],
  ["log: {colour: x}", "log.colour: found a key that svc does not know, expected one of level"],
  [
    "outbound:\n  retry:\n    - 1m\n    - soon",
    `${user}:4: outbound.retry[1]: found "soon", expected a span`,
  ],
  ["outbound: {max_age: 48}", "outbound.max_age: found 48, expected a span"],
  ["outbound: fast", `${user}:1: outbound: found "fast", expected a section`],
  ["http: {listen: []}", "http.listen: found [], expected 1 to 32 entries"],
  ['http: {listen: ["[::]:70000"]}', 'http.listen[0]: found "[::]:70000", expected an address and a port'],
  ["http: {listen: [localhost:80]}", "http.listen[0]"],
  ["http: {trusted_proxies: [10.0.0.0/33]}", "http.trusted_proxies[0]: found"],
  ["limits: {min_free_space: 5}", "limits.min_free_space: found 5, expected a share"],
  [
    "limits: {rates: {mesages-write: {burst: 1, per_second: 1}}}",
    "of the buckets messages-write, messages-read",
  ],
  [
    "limits:\n  rates:\n    default: {burst: 0, per_second: 1}",
    `${user}:3: limits.rates.default.burst: found 0`,
  ],
  ["dns: {servers: [one.one]}", "dns.servers[0]"],
  ["public_url: http://mail.acme.example", "public_url: found"],
  ["data_dir: here", 'data_dir: found "here", expected an absolute path'],
  ["retention: {content: 3}", "retention.content: found 3, expected a span from 0s to 3650d"],
  ["retention: {messages: 0}", "retention.messages: found 0, expected a span from 1d to 3650d"],
  ["retention: {events: 23h}", 'retention.events: found "23h", expected a span from 1d to 3650d'],
  ["backup: {at: x}", 'backup.at: found "x", expected a time of day such as 03:30'],
  ["backup: {at: 24:00}", 'backup.at: found "24:00", expected a time of day'],
  ["backup: {keep: 0}", "backup.keep: found 0, expected a whole number from 1"],
  [
    "tracking: {url: x}",
    "tracking: found a key that is not available in this version yet, expected no such key",
  ],
  ["operations: {email: nobody}", "operations.email: found"],
  [
    "tls: {acme: {directory: http://acme.example/}}",
    'tls.acme.directory: found "http://acme.example/", expected an https address',
  ],
  [
    "tls: {acme: {directory: https://192.0.2.1/dir}}",
    "expected an https address, such as https://acme.example/directory",
  ],
  [
    'tls: {mode: acme, acme: {http_listen: "[::]:8443"}}',
    "tls.acme.http_listen: found [::]:8443, which http.listen has too",
  ],
  ["log: {format: xml}", 'log.format: found "xml", expected one of auto, json, pretty'],
  ["dnsbl: {zones: [{zone: bl.test, codes: [10.0.0.1]}]}", "dnsbl.zones[0]"],
  ["dnsbl: {zones: [{zone: bl.test, removal_url: nowhere}]}", "dnsbl.zones[0]"],
  ["dnsbl: {zones: [{name: Test}]}", "dnsbl.zones[0]"],
  ["dnsbl: {on_listing: pause}", 'dnsbl.on_listing: found "pause", expected one of none, drain'],
  [
    "tls: {mode: off}",
    "expected acme, files or self-signed, or http.listen on loopback only (now [::]:8443)",
  ],
  [
    "tls: {mode: off}\nhttp: {listen: [127.0.0.1:80]}\nrelay: {starttls: [127.0.0.1:587]}",
    `${user}:3: relay.starttls: found 127.0.0.1:587, expected no address where tls.mode is off`,
  ],
  ["tls: {mode: files}", "tls.cert: found nothing, expected set where tls.mode is files"],
  ["tls: {cert: /c.pem}", "tls.key: found nothing"],
  ["tls: {cert: /c.pem, key: /k.pem}", "tls.cert: found /c.pem, where there is no file"],
  ["outbound: {sign: false}", "outbound.sign: found false, expected true, unless outbound.smart_host signs"],
  [
    "outbound: {shaping_file: /shaping.yaml}",
    "outbound.shaping_file: found /shaping.yaml, where there is no file",
  ],
  ["outbound: {smart_host: {user: u}}", "outbound.smart_host.host: found nothing"],
  ["outbound: {smart_host: {host: a.example, user: u}}", "outbound.smart_host.password_file: found nothing"],
  [
    'relay: {implicit_tls: ["[::]:8587"]}',
    "relay.implicit_tls: found [::]:8587, which relay.starttls has too",
  ],
  ["hostname: a.example\nhostname: b.example", `${user}:2: found invalid YAML`],
  ["hostname: [", `${user}:1: found invalid YAML`],
  ["- a", `${user}:1: found ["a"], expected a section`],
])("refuses %j, saying where, what and how", (yaml, said) => {
  expect(faults(yaml).join("\n")).toContain(said);
});

test.each([
  ["require", false],
  ["opportunistic", false],
  ["none", false],
  ["none", true],
])("a password for a smart host with tls: %s, allow_unverified_password: %s is refused", (tls, allowed) => {
  const yaml = `outbound: {smart_host: {host: a.example, user: u, password_file: /pw, tls: ${tls}, allow_unverified_password: ${allowed}}}`;
  expect(faults(yaml, {}, { "/pw": "s3cret" })).toEqual([
    expect.stringContaining(
      `${user}:1: outbound.smart_host.tls: found "${tls}", expected verify where a password is sent`,
    ),
  ]);
});

test("the operator may allow the password under a certificate that is not verified", () => {
  for (const tls of ["require", "opportunistic", "verify"]) {
    const yaml = `outbound: {smart_host: {host: a.example, user: u, password_file: /pw, tls: ${tls}, allow_unverified_password: true}}`;
    expect(load({ [user]: yaml, "/pw": "s3cret" }).outbound.smartHost).toMatchObject({
      tls,
      password: "s3cret",
      allowUnverifiedPassword: true,
    });
  }
  for (const tls of ["none", "require", "opportunistic"])
    expect(faults(`outbound: {smart_host: {host: a.example, tls: ${tls}}}`)).toEqual([]);
});

test("the content of a shaping file is judged with the configuration, every fault of it", () => {
  const judge = (text: string): string =>
    faults("outbound: {shaping_file: /shaping.yaml}", {}, { "/shaping.yaml": text }).join("\n");
  const wrong = judge("groups: {google: {connections: 0, foo: 1, per_second: many}, x.test: 5}\nzz: 1");
  expect(wrong).toContain(`${user}:1: outbound.shaping_file: found `);
  expect(wrong).toContain(
    "found 0 at groups.google.connections of /shaping.yaml, expected a whole number from 1 to 1000",
  );
  expect(wrong).toContain(
    'found "many" at groups.google.per_second of /shaping.yaml, expected a number above 0, to 100000',
  );
  expect(wrong).toContain("found the unknown key foo at groups.google of /shaping.yaml, expected ");
  expect(wrong).toContain("found 5 at groups.x.test of /shaping.yaml, expected ");
  expect(wrong).toContain("found the unknown key zz of /shaping.yaml, expected ");
  expect(judge("groups: {gogle: {connections: 5}}")).toContain(
    'found the name "gogle" at groups of /shaping.yaml, expected a domain, or one of google, microsoft, ',
  );
  expect(judge("groups: {x.test: {tls: always, messages_per_connection: 0.5}}")).toContain(
    'found "always" at groups.x.test.tls of /shaping.yaml, expected one of opportunistic, require, verify',
  );
  expect(judge("groups: {default: {tls: require}}")).toContain(
    'found "require" at groups.default.tls of /shaping.yaml, expected no tls here: outbound.tls is for all',
  );
  expect(judge("groups: {x.test: {tls: verify, messages_per_connection: 5}, Bücher.example: {}}")).toBe("");
  expect(judge("- a")).toContain('found ["a"] of /shaping.yaml, expected ');
  expect(judge("groups: {google: {connections: 5}, default: {per_second: 0.5}}")).toBe("");
});

test("all faults are reported at once, in the order of the file", () => {
  const said = faults(
    "hostnam: x\noutbound: {port: x, sign: false}\ntls: {mode: files}\ntracking: {url: 1}",
    {
      env: { SVC_RELAY_MAX_CONECTIONS: "1", SVC_ACCOUNT: "default", SVC_TRACKING_URL: "x" },
      machineName: "laptop",
    },
  );
  expect(said).toEqual([
    `${user}: hostname: found nothing (and this machine calls itself "laptop"), expected the full host name, such as mail.acme.example`,
    `${user}: tls.cert: found nothing, expected set where tls.mode is files`,
    `${user}: tls.key: found nothing, expected set where tls.mode is files`,
    `${user}:1: hostnam: found a key that svc does not know; did you mean hostname?`,
    expect.stringContaining(`${user}:2: outbound.port: found "x", expected a whole number`),
    `${user}:2: outbound.sign: found false, expected true, unless outbound.smart_host signs`,
    `${user}:4: tracking: found a key that is not available in this version yet, expected no such key`,
    "environment: SVC_RELAY_MAX_CONECTIONS: found a variable that svc does not know; did you mean SVC_RELAY_MAX_CONNECTIONS?",
    "environment: SVC_TRACKING_URL: found a variable that is not available in this version yet, expected no such variable",
  ]);
});

test("plain HTTP is taken on loopback and behind a named proxy", () => {
  expect(
    load({ [user]: "{tls: {mode: off}, http: {listen: [127.0.0.1:80, unix:/run/svc/http.sock]}}" }).tls.mode,
  ).toBe("off");
  expect(
    load({ [user]: "{tls: {mode: off}, http: {trusted_proxies: [10.0.0.1]}}" }).http.trustedProxies,
  ).toEqual(["10.0.0.1/32"]);
});

test("content may be kept not at all, messages and events for a day at least", () => {
  const none = { contentMs: 0, messagesMs: 7_776_000_000, eventsMs: 2_592_000_000, auditMs: 7_776_000_000 };
  expect(load({ [user]: "hostname: a.example" }).retention).toEqual({ ...none, contentMs: 259_200_000 });
  for (const text of ["0", '"0"', "0s", "0d"])
    expect(load({ [user]: `retention: {content: ${text}}` }).retention).toEqual(none);
  const env = { SVC_RETENTION_CONTENT: "0", SVC_RETENTION_MESSAGES: "1d", SVC_RETENTION_EVENTS: "400d" };
  expect(load({}, { env }).retention).toEqual({
    contentMs: 0,
    messagesMs: 86_400_000,
    eventsMs: 34_560_000_000,
    auditMs: 7_776_000_000,
  });
});

test("a key without a value counts as not set, and YAML that asks for gigabytes is a fault", () => {
  expect(load({ [user]: "tls: {mode: , cert: , key: }\nhttp:\n" }).tls.mode).toBe("self-signed");
  const bomb = [
    "a: &a [x,x,x,x,x,x,x,x,x]",
    ...["b", "c", "d", "e", "f", "g"].map(
      (key, i) => `${key}: &${key} [${Array(9).fill(`*${"abcdef"[i]}`).join(",")}]`,
    ),
    "outbound: {retry: *g}",
  ];
  expect(faults(bomb.join("\n")).join("\n")).toContain("outbound.retry");
});

test("a file that cannot be read is a fault, not a stack", () => {
  const readFile = (): string => {
    throw new Error("EACCES: permission denied");
  };
  expect(faults("", { readFile }).join("\n")).toContain(
    `${user}: found a file that cannot be read (EACCES: permission denied)`,
  );
});

test.each([
  ["hostname: x.test\nhostname: x.test", "Map keys must be unique"],
  ["hostname: x.test\n\tdns: {}", "tab"],
  ["hostname: a: b: c", "mapping"],
])("a file that is not YAML gets that fault only, not those of missing options: %j", (text, why) => {
  const said = faults(text, { machineName: "laptop", env: { SVC_TLS_CERT: "/cert.pem" } });
  expect(said.length).toBeGreaterThan(0);
  for (const line of said) expect(line).toContain("found invalid YAML");
  expect(said.join("\n").toLowerCase()).toContain(why.toLowerCase());
});

test("a file that is not there lets no other be blamed, and what is wrong elsewhere is still reported", () => {
  const over = { machineName: "laptop", flags: { config: "/none.yaml" }, env: { SVC_DNS_TRIES: "x" } };
  expect(faults("", over)).toEqual([
    "/none.yaml: found no file, expected a readable svc.yaml",
    expect.stringContaining('environment: SVC_DNS_TRIES: found "x"'),
  ]);
});

test("a socket path that the system would cut is refused", () => {
  expect(faults("", { flags: { socket: `/${"x".repeat(107)}` } }).join("\n")).toContain(
    "command line: socket: found",
  );
});

test("--dev reads no file, listens on loopback above 1024 and stays there", () => {
  const dev = devConfig(request({ [user]: "hostname: real.example" }, { flags: { data_dir: "/tmp/dev" } }));
  if ("faults" in dev) throw new Error("faults");
  expect(dev.config).toMatchObject({
    dev: true,
    hostname: "mail.example.test",
    publicUrl: "https://127.0.0.1:8443",
    dataDir: "/tmp/dev",
  });
  expect(dev.config.relay.starttls).toEqual([
    { host: "127.0.0.1", port: 8587 },
    { host: "127.0.0.1", port: 8525 },
  ]);
  expect(dev.config.relay.implicitTls).toEqual([{ host: "127.0.0.1", port: 8465 }]);
  const open = devConfig(request({}, { env: { SVC_HTTP_LISTEN: "0.0.0.0:8443" } }));
  expect("faults" in open && open.faults.map(faultText)).toEqual([
    "environment: SVC_HTTP_LISTEN: found 0.0.0.0:8443, expected a loopback address: --dev is for this machine alone",
  ]);
});

test.each([
  ["30s", 30_000],
  ["5m", 300_000],
  ["48h", 172_800_000],
  ["3d", 259_200_000],
  ["250ms", 250],
  ["1h30m", 5_400_000],
  ["1.5h", 5_400_000],
  ["", null],
  ["5", null],
  ["5 m", null],
  ["-5m", null],
  ["5w", null],
  ["99999d", null],
])("reads the span %j as %j ms", (text, ms) => expect(parseSpan(text)).toBe(ms));

test("shows a span in its largest whole unit", () => {
  expect([90_000, 5_400_000, 172_800_000, 1, 0].map(spanText)).toEqual(["90s", "90m", "2d", "1ms", "0ms"]);
});

test("the guard has its two shares, each by itself, and false switches it off", () => {
  const guardOf = (text: string, env = {}) =>
    load({ [user]: `hostname: mail.acme.example\n${text}` }, { env }).guard;
  expect(guardOf("")).toEqual({ hardBounceShare: 0.1, complaintShare: 0.003 });
  expect(guardOf("guard: {hard_bounce: 5%}")).toEqual({ hardBounceShare: 0.05, complaintShare: 0.003 });
  expect(guardOf("guard: {complaint: 0.1%}")).toEqual({ hardBounceShare: 0.1, complaintShare: 0.001 });
  expect(guardOf("guard: false")).toBeNull();
  expect(guardOf("", { SVC_GUARD: "false" })).toBeNull();
  for (const wrong of ["true", "10%", "{hard_bounce: 10}", "{hard_bounce: 101%}", "{bounces: 5%}"])
    expect(faults(`hostname: mail.acme.example\nguard: ${wrong}`), wrong).toEqual([
      expect.stringMatching(/:2: guard.*expected false, or two shares such as/),
    ]);
});
