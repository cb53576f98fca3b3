// What `svc domains records --format` writes, read by those that it is for: BIND's and Knot's zone checkers, botocore, which the
// AWS command line checks a request with, the types of Cloudflare's library, and HashiCorp's parser of HCL. Each is shown to refuse what is wrong, too.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { missingPeers, peersFolder } from "../support/peers.ts";
import type { DnsRecord } from "../../src/model/dns-record.ts";
import { removeFolder } from "../support/folders.ts";

const missing = missingPeers();
if (missing) console.warn(`SKIPPED: formats of DNS records: ${missing}`);

const python = `import json, sys
import botocore.session
from botocore.validate import ParamValidator
model = botocore.session.get_session().get_service_model("route53")
shape = model.operation_model("ChangeResourceRecordSets").input_shape
report = ParamValidator().validate({"HostedZoneId": "Z1", "ChangeBatch": json.load(open(sys.argv[1]))}, shape)
print(report.generate_report())
sys.exit(1 if report.has_errors() else 0)
`;

/** Debian's copy of the library, so without modules of the network. */
const go = `package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclparse"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func must(faults hcl.Diagnostics) {
	if faults.HasErrors() {
		fmt.Fprintln(os.Stderr, faults.Error())
		os.Exit(1)
	}
}

func main() {
	file, faults := hclparse.NewParser().ParseHCLFile(os.Args[1])
	must(faults)
	locals := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "locals"}}}
	content, faults := file.Body.Content(locals)
	must(faults)
	attributes, faults := content.Blocks[0].Body.JustAttributes()
	must(faults)
	value, faults := attributes["svc_records"].Expr.Value(nil)
	must(faults)
	text, _ := ctyjson.Marshal(value, value.Type())
	fmt.Println(string(text))
}
`;

describe.skipIf(missing !== null)("the records of a domain", () => {
  const dir = mkdtempSync(join(tmpdir(), "svc-formats-"));
  let svc: Appliance;
  let records: DnsRecord[];

  beforeAll(async () => {
    svc = await startAppliance({ config: { public_url: "https://www.svc.test" } });
    await svc.admin("POST", "/v1/domains", { name: "acme.test" });
    const change = { tracking_domain: "links.acme.test" };
    records = (await svc.admin("PATCH", "/v1/domains/acme.test", change)).json.records;
    expect(records.map(({ type }) => type).toSorted()).toEqual(["CNAME", "MX", "TXT", "TXT", "TXT", "TXT"]);
  });
  afterAll(async () => {
    await svc?.stop();
    removeFolder(dir);
  });

  const written = async (format: string): Promise<string> => {
    const ran = await svc.cli("domains", "records", "acme.test", "--format", format);
    expect(ran.code, ran.stderr).toBe(0);
    return ran.stdout;
  };
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const run = (command: string, args: string[], env: Record<string, string> = {}) => {
    const { status, stdout, stderr } = spawnSync(command, args, { env: { ...process.env, ...env } });
    return { status, said: `${String(stdout)}${String(stderr)}`, out: String(stdout) };
  };

  test("bind: a zone with them passes named-checkzone and kzonecheck, and has each value whole", async () => {
    const text = await written("bind");
    const zone = (lines: string): string =>
      file("zone", `$TTL 60\n@ IN SOA ns1 hostmaster 1 2 3 4 5\n@ IN NS ns1\nns1 IN A 192.0.2.1\n${lines}`);
    const good = run("named-checkzone", ["-D", "-o", "-", "acme.test", zone(text)]);
    expect(good.status, good.said).toBe(0);
    for (const { type, value } of records) {
      const joined = good.out.replaceAll('" "', "");
      expect(joined).toContain(type === "TXT" ? `"${value}"` : `${value}.`);
    }
    const knot = run("kzonecheck", ["-o", "acme.test", zone(text)]);
    expect(knot.status, knot.said).toBe(0);
    const joinedStrings = zone(text.replaceAll('" "', ""));
    expect(run("named-checkzone", ["acme.test", joinedStrings]).status).not.toBe(0);
    const noPreference = zone(text.replace("\tMX\t10 ", "\tMX\t"));
    expect(run("kzonecheck", ["-o", "acme.test", noPreference]).status).not.toBe(0);
  });

  test("route53: botocore takes them as a change batch", async () => {
    const text = await written("route53");
    const good = run("/usr/bin/python3", ["-c", python, file("batch.json", text)]);
    expect(good.status, good.said).toBe(0);
    const { Changes } = JSON.parse(text) as { Changes: { ResourceRecordSet: { Name: string } }[] };
    expect(Changes).toHaveLength(records.length);
    const wrong = text.replace('"TTL": 3600', '"TTL": "3600"');
    const bad = run("/usr/bin/python3", ["-c", python, file("batch.json", wrong)]);
    expect([bad.status, bad.said]).toEqual([1, expect.stringContaining("TTL")]);
  });

  test("cloudflare: the types of its library take them as the body of a batch", async () => {
    const text = await written("cloudflare");
    const library = join(peersFolder, "cloudflare/node_modules/cloudflare/resources/dns/records.js");
    const compile = (body: string) => {
      const head = `import type { RecordBatchParams } from ${JSON.stringify(library)};\n`;
      const ts = file(
        "body.mts",
        `${head}export const body: Omit<RecordBatchParams, "zone_id"> = ${body};\n`,
      );
      const flags = [
        "--ignoreConfig",
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--target",
        "esnext",
      ];
      return run(process.execPath, ["node_modules/typescript/bin/tsc", ...flags, ts]);
    };
    const good = compile(text);
    expect(good.status, good.said).toBe(0);
    expect(compile(text.replace('"priority": 10', '"preference": 10')).said).toContain("preference");
    const { posts } = JSON.parse(text) as { posts: { type: string; content: string; proxied?: boolean }[] };
    expect(posts).toHaveLength(records.length);
    for (const { type, content, proxied } of posts) {
      if (type === "TXT") expect(content).toMatch(/^"[^"]{1,255}"(?: "[^"]{1,255}")*$/);
      expect(proxied).toBe(type === "CNAME" ? false : undefined);
    }
  });

  test("terraform: HashiCorp's parser reads each value as it is", async () => {
    file("main.go", go);
    const env = {
      GO111MODULE: "off",
      GOPATH: "/usr/share/gocode",
      GOCACHE: join(peersFolder, "go-cache"),
      GOFLAGS: "",
    };
    execFileSync("go", ["build", "-o", join(dir, "read-hcl"), join(dir, "main.go")], {
      env: { ...process.env, ...env },
      stdio: "pipe",
    });
    const text = await written("terraform");
    const good = run(join(dir, "read-hcl"), [file("records.tf", text)]);
    expect(good.status, good.said).toBe(0);
    expect(JSON.parse(good.out)).toEqual(
      records.map(({ type, name, value }) => {
        const [priority, target] = type === "MX" ? value.split(" ") : [null, value];
        return {
          type,
          name,
          value: target,
          priority: priority === null ? null : Number(priority),
          ttl: 3600,
        };
      }),
    );
    expect(run(join(dir, "read-hcl"), [file("records.tf", text.replace("]", ""))]).status).toBe(1);
  });
});
