// The Dockerfile, without an engine that could build it: what it says is parsed; its last stage is laid out in a plain folder
// from the lines that copy, and the program in there serves, and is found healthy by the image's own check.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterAll, expect, test } from "vitest";
import { nouns } from "../../src/cli/program.ts";
import { eventually, freePorts } from "../support/appliance.ts";
import { removeFolder } from "../support/folders.ts";

const root = join(import.meta.dirname, "../..");
const dir = mkdtempSync(join(tmpdir(), "svc-image-"));
afterAll(() => removeFolder(dir));

interface Instruction {
  word: string;
  text: string;
}

/** Stages with their instructions; continued lines are joined, comments left out. */
const stages = readFileSync(join(root, "Dockerfile"), "utf8")
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line): Instruction => ({
    word: line.split(" ")[0] ?? "",
    text: line.slice(line.indexOf(" ") + 1).trim(),
  }))
  .reduce<Instruction[][]>(
    (all, one) =>
      one.word === "FROM" ? [...all, [one]] : [...all.slice(0, -1), [...(all.at(-1) ?? []), one]],
    [],
  );
const [build = [], image = []] = stages;
const of = (stage: Instruction[], word: string): string[] =>
  stage.flatMap((one) => (one.word === word ? [one.text] : []));
const list = (text: string | undefined): string[] => JSON.parse(text ?? "[]") as string[];

test("there are two stages, of images of a named release", () => {
  expect(stages).toHaveLength(2);
  expect(of(build, "FROM")).toEqual([expect.stringMatching(/^node:\d+-bookworm-slim AS build$/)]);
  expect(of(image, "FROM")).toEqual([expect.stringMatching(/^debian:bookworm-slim$/)]);
});

test("what the first stage copies is there, and is not kept out of the build", () => {
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8").split("\n").filter(Boolean);
  const copied = of(build, "COPY").flatMap((text) => text.split(" ").slice(0, -1));
  expect(copied).toEqual(["package.json", "package-lock.json", "."]);
  for (const name of copied) expect(existsSync(join(root, name)), name).toBe(true);
  for (const name of ["package.json", "src", "bin", "tsup.config.ts", "examples", "systemd"])
    expect(ignored).not.toContain(name);
  expect(ignored).toContain("node_modules");
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    scripts: Record<string, string>;
  };
  for (const [, script = ""] of of(build, "RUN")
    .join(" ")
    .matchAll(/npm run (\w+)/g))
    expect(scripts).toHaveProperty(script);
});

test("it runs as a user that is not root, keeps what it writes in volumes of that user, and is checked by the program", () => {
  expect(of(image, "USER")).toEqual(["svc"]);
  expect(of(image, "RUN").join(" ")).toMatch(/useradd .*--uid 990 .* svc\b/);
  const made = of(image, "RUN").join(" ");
  for (const place of list(of(image, "VOLUME")[0]))
    expect(made).toMatch(new RegExp(`install -d -o svc -g svc [^&]*${place}\\b`));
  expect(of(image, "EXPOSE")).toEqual(["443 587 2525 465 25"]);
  const check = list(/CMD (\[.*\])/.exec(of(image, "HEALTHCHECK")[0] ?? "")?.[1]);
  expect(check[0]).toBe("svc");
  expect(nouns.map(({ name }) => name)).toContain(check[1]);
});

/** The last stage's lines that copy, below `dir`; of the packages those that stay after `npm prune --omit=dev`. */
function layOut(): void {
  for (const text of of(image, "COPY")) {
    const [from = "", to = ""] = text.replace("--from=build ", "").split(" ");
    const name = relative("/src", from);
    const target = join(dir, to.endsWith("/") ? join(to, name) : to);
    mkdirSync(dirname(target), { recursive: true });
    if (name !== "node_modules") cpSync(join(root, name), target, { recursive: true });
    else
      for (const path of kept())
        cpSync(path, join(dir, to, relative(join(root, "node_modules"), path)), { recursive: true });
  }
}

const kept = (): string[] =>
  execFileSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: root, encoding: "utf8" })
    .split("\n")
    .filter((path) => path.includes("/node_modules/"));

test("what the last stage copies is a program that serves, and that its own check finds healthy", async () => {
  layOut();
  const svc = join(dir, "usr/lib/svc-mail/bin/svc");
  const places = Object.fromEntries(
    (of(image, "ENV")[0] ?? "").split(" ").map((pair): [string, string] => {
      const [name = "", value = ""] = pair.split("=");
      mkdirSync(join(dir, value), { recursive: true });
      return [name, join(dir, value)];
    }),
  );
  const env = { PATH: "/usr/bin:/bin", HOME: dir, ...places };
  const [http, smtp, smtps] = await freePorts(3);
  const config = join(dir, "svc.yaml");
  writeFileSync(
    config,
    JSON.stringify({
      hostname: "mail.svc.test",
      http: { listen: [`127.0.0.1:${http}`] },
      relay: { starttls: [`127.0.0.1:${smtp}`], implicit_tls: [`127.0.0.1:${smtps}`] },
      inbound: { listen: [] },
      limits: { min_free_space: "0%" },
    }),
  );
  const [, ...check] = list(/CMD (\[.*\])/.exec(of(image, "HEALTHCHECK")[0] ?? "")?.[1]);
  const healthy = () => spawnSync(svc, check, { env, encoding: "utf8" });
  expect(healthy().status).toBe(6);
  const child = spawn(svc, [...list(of(image, "CMD")[0]), "--config", config], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  try {
    const found = await eventually(async () => {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`);
      const result = healthy();
      return result.status === 0 && result;
    });
    expect(found.stdout).toBe("alive\n");
    expect(existsSync(join(dir, "var/lib/svc/svc.db"))).toBe(true);
    expect(existsSync(join(dir, "run/svc/admin.sock"))).toBe(true);
  } finally {
    const gone = once(child, "exit");
    child.kill((of(image, "STOPSIGNAL")[0] ?? "SIGTERM") as NodeJS.Signals);
    expect(await gone).toEqual([0, null]);
  }
});
