// Builds the Debian packages into packaging/out (`npm run package [-- amd64 arm64]`): the built program with a Node.js of its own, so
// that no other Node.js of the machine matters. That of another architecture comes from the npm registry, in the version
// and with the checksum of package-lock.json. Needs dpkg-deb and `npm run build` before.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  closeSync,
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { commandsPage, configurationPage } from "./man.ts";

/** Debian's names of what npm calls otherwise. */
const architectures: Record<string, string> = { amd64: "x64", arm64: "arm64" };
/** glibc 2.34, which the database's library is built against, is that of Debian 12 and Ubuntu 22.04. */
const depends = "libc6 (>= 2.34), libstdc++6, libgcc-s1, libatomic1, adduser";

const root = join(import.meta.dirname, "..");
/** All that the program is to see of the environment of who builds. */
const path = { PATH: process.env["PATH"] };
const out = join(import.meta.dirname, "out");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};
/** The program's, and the revision of the package. */
const version = `${manifest.version}-1`;
const maintainer = "the svc authors <svc-mail@localhost>";
const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, { version: string; integrity: string }>;
};

async function build(architecture: string): Promise<void> {
  const npmName = architectures[architecture];
  if (npmName === undefined)
    throw new Error(
      `found the architecture ${architecture}, expected ${Object.keys(architectures).join(" or ")}`,
    );
  const tree = join(out, architecture);
  rmSync(tree, { recursive: true, force: true });
  program(tree, npmName);
  system(tree);
  documentation(tree);
  await manual(tree);
  control(tree, architecture);
  setModes(tree);
  const file = join(out, `svc-mail_${version}_${architecture}.deb`);
  execFileSync("dpkg-deb", ["--root-owner-group", "-Zzstd", "-z9", "--build", tree, file], {
    stdio: "inherit",
  });
  rmSync(tree, { recursive: true });
}

/** /usr/lib/svc-mail, as the npm package is laid out, and its Node.js. */
function program(tree: string, npmName: string): void {
  const home = join(tree, "usr/lib/svc-mail");
  if (!existsSync(join(root, "dist/svc.js"))) throw new Error("there is no dist/: run npm run build first");
  for (const name of [
    "package.json",
    "bin/svc",
    "dist",
    "examples",
    "systemd",
    "docs/domains.md",
    "docs/moving-in.md",
  ])
    copy(join(root, name), join(home, name));
  withoutInterpreter(join(home, "dist"));
  const database = join(root, "node_modules/better-sqlite3");
  const kept = join(home, "node_modules/better-sqlite3");
  for (const name of ["package.json", "LICENSE", "lib", `prebuilds/linux-${npmName}.node`])
    copy(join(database, name), join(kept, name));
  const node = nodePackage(npmName);
  for (const name of ["package.json", "LICENSE", "bin/node"])
    copy(join(node, name), join(home, `node_modules/node-linux-${npmName}`, name));
  mkdirSync(join(tree, "usr/bin"), { recursive: true });
  symlinkSync("../lib/svc-mail/bin/svc", join(tree, "usr/bin/svc"));
}

/** bin/svc names the Node.js to use: a `node` of the machine is none of the package's concern. */
function withoutInterpreter(folder: string): void {
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".js"))) {
    const file = join(folder, name);
    writeFileSync(file, readFileSync(file, "utf8").replace(/^#!.*\n/, ""));
  }
}

/** The folder of the Node.js of an architecture: among the project's packages, or fetched. */
function nodePackage(npmName: string): string {
  const name = `node-linux-${npmName}`;
  const installed = join(root, "node_modules", name);
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? { version: "", integrity: "" };
  if (existsSync(join(installed, "bin/node"))) return installed;
  const folder = join(out, "cache", `${name}-${version}`);
  if (existsSync(join(folder, "package/bin/node"))) return join(folder, "package");
  mkdirSync(folder, { recursive: true });
  execFileSync("npm", ["pack", "--silent", `${name}@${version}`, "--pack-destination", folder], {
    cwd: root,
  });
  const archive = join(folder, `${name}-${version}.tgz`);
  const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (found !== integrity)
    throw new Error(`${archive} has ${found}, expected ${integrity} of package-lock.json`);
  execFileSync("tar", ["-xzf", archive, "-C", folder]);
  rmSync(archive);
  return join(folder, "package");
}

/** The unit, the configuration, and the completion of the shells. */
function system(tree: string): void {
  copy(join(root, "systemd/svc-mail.service"), join(tree, "usr/lib/systemd/system/svc-mail.service"));
  copy(join(import.meta.dirname, "debian/svc.yaml"), join(tree, "etc/svc/svc.yaml"));
  const shells = {
    bash: "usr/share/bash-completion/completions/svc",
    zsh: "usr/share/zsh/vendor-completions/_svc",
    fish: "usr/share/fish/vendor_completions.d/svc.fish",
  };
  for (const [shell, file] of Object.entries(shells))
    write(join(tree, file), execFileSync(join(root, "bin/svc"), ["completion", shell], { env: path }));
}

function documentation(tree: string): void {
  const folder = join(tree, "usr/share/doc/svc-mail");
  for (const name of ["README.md", "SECURITY.md"]) copy(join(root, name), join(folder, name));
  for (const name of readdirSync(join(root, "docs")).filter((page) => page.endsWith(".md")))
    copy(join(root, "docs", name), join(folder, "docs", name));
  write(join(folder, "changelog.gz"), gzipSync(readFileSync(join(root, "CHANGELOG.md")), { level: 9 }));
  write(join(folder, "changelog.Debian.gz"), gzipSync(debianChangelog(), { level: 9 }));
  for (const name of ["grafana.json", "prometheus-alerts.yaml"])
    copy(join(import.meta.dirname, name), join(folder, "packaging", name));
  write(join(folder, "copyright"), copyright());
}

async function manual(tree: string): Promise<void> {
  const help = execFileSync(join(root, "bin/svc"), ["--help"], { env: path, encoding: "utf8" });
  const texts = {
    "man1/svc.1": await commandsPage(manifest.version, help),
    "man5/svc.yaml.5": configurationPage(manifest.version),
  };
  for (const [file, text] of Object.entries(texts))
    write(join(tree, "usr/share/man", `${file}.gz`), gzipSync(text, { level: 9 }));
}

/** What a version changes stands in CHANGELOG.md, which is beside it. */
function debianChangelog(): string {
  const date = new Date(lstatSync(join(root, "CHANGELOG.md")).mtimeMs).toUTCString().replace("GMT", "+0000");
  return `svc-mail (${version}) unstable; urgency=medium

  * Version ${manifest.version}: see changelog.gz.

 -- ${maintainer}  ${date}
`;
}

/** In Debian's machine-readable form; the licences of what is inside stand beside each part. */
function copyright(): string {
  const indented = readFileSync(join(root, "LICENSE"), "utf8")
    .trimEnd()
    .split("\n")
    .slice(2)
    .map((line) => ` ${line === "" ? "." : line}`)
    .join("\n");
  return `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: svc

Files: *
Copyright: 2026 the svc authors
License: Expat
${indented}

Files: usr/lib/svc-mail/node_modules/*
Copyright: their authors
License: other
 See the file LICENSE in the folder of each.
`;
}

function control(tree: string, architecture: string): void {
  const folder = join(tree, "DEBIAN");
  for (const script of ["postinst", "prerm", "postrm"])
    copy(join(import.meta.dirname, "debian", script), join(folder, script));
  write(join(folder, "conffiles"), "/etc/svc/svc.yaml\n");
  const files = filesBelow(tree).filter((file) => !file.startsWith("DEBIAN/"));
  const kilobytes = files.reduce((sum, file) => sum + Math.ceil(lstatSync(join(tree, file)).size / 1024), 0);
  const plain = files.filter((file) => lstatSync(join(tree, file)).isFile() && !file.startsWith("etc/"));
  write(join(folder, "md5sums"), plain.map((file) => `${md5(join(tree, file))}  ${file}\n`).join(""));
  write(
    join(folder, "control"),
    `Package: svc-mail
Version: ${version}
Architecture: ${architecture}
Maintainer: ${maintainer}
Installed-Size: ${kilobytes}
Depends: ${depends}
Conflicts: daemontools
Section: mail
Priority: optional
Description: self-hostable email delivery appliance
 REST and SMTP in, MX out, signed webhooks back; one program with its database.
 .
 The program is /usr/bin/svc, its unit svc-mail.service. It brings a Node.js of
 its own. Set it up with: svc init --hostname mail.acme.example
`,
  );
}

const md5 = (file: string): string => createHash("md5").update(readFileSync(file)).digest("hex");

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted();
}

/** Whatever the umask of who builds it: programs and scripts run, and all of it can be read. */
function setModes(tree: string): void {
  const folders = readdirSync(tree, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  );
  chmodSync(tree, 0o755);
  for (const entry of folders) chmodSync(join(entry.parentPath, entry.name), 0o755);
  for (const file of filesBelow(tree).map((name) => join(tree, name)))
    if (lstatSync(file).isFile()) chmodSync(file, runs(file) ? 0o755 : 0o644);
}

function runs(file: string): boolean {
  const start = Buffer.alloc(4);
  const opened = openSync(file, "r");
  readSync(opened, start);
  closeSync(opened);
  return (
    start.toString("latin1", 0, 2) === "#!" ||
    (basename(file) === "node" && start.toString("latin1", 1) === "ELF")
  );
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  if (lstatSync(from).isDirectory()) cpSync(from, to, { recursive: true });
  else copyFileSync(from, to);
}

function write(file: string, content: string | Buffer): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, content);
}

const wanted = process.argv.slice(2);
for (const architecture of wanted.length > 0 ? wanted : Object.keys(architectures)) await build(architecture);
