// GET /openapi.json, the description of the API, made of its routes once; and /docs, which shows it with Redoc. The script
// of that page is served by this program and loads nothing from another host: the page's policy allows this host only.
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { RouteDeps } from "../deps.ts";
import { htmlHeaders } from "../html.ts";
import { createDocument } from "../openapi/document.ts";
import { route, type ListenerKind, type Route } from "../route.ts";
import { htmlPage } from "../view-fields.ts";

const open = {
  method: "GET",
  lastModifiedFrom: [],
  scopes: "open",
  bucket: "default",
  query: z.object({}),
  body: null,
} as const;

/** Of `others` and of themselves. */
export function descriptionRoutes({ config }: RouteDeps, others: readonly Route[]): Route[] {
  const own: Route[] = [];
  const text = (listener: ListenerKind) =>
    once(() => {
      const { publicUrl } = config;
      return Buffer.from(JSON.stringify(createDocument([...others, ...own], { listener, publicUrl })));
    });
  const texts = { public: text("public"), admin: text("admin") };
  const script = once(readScript);

  own.push(
    route({
      ...open,
      openTokens: 5,
      path: "/openapi.json",
      summary: "Get the description of this API (OpenAPI 3.1)",
      answers: { 200: documentSchema },
      listeners: "both",
      handle: ({ listener }) => Promise.resolve({ status: 200, headers: kept(300), body: texts[listener]() }),
    }),
    route({
      ...open,
      path: "/docs",
      summary: "Get the documentation of this API as a page",
      answers: { 200: { "text/html": htmlPage } },
      listeners: "public",
      handle: () => Promise.resolve({ status: 200, headers: { ...kept(300), ...pageHeaders }, body: page }),
    }),
    route({
      ...open,
      openTokens: 20, // a megabyte to encrypt
      path: "/docs/redoc.js",
      summary: "Get the script of /docs",
      answers: { 200: { "text/javascript": scriptText } },
      listeners: "public",
      handle: async () => ({
        status: 200,
        headers: { ...kept(86_400), "content-type": "text/javascript; charset=utf-8" },
        body: await script(),
      }),
    }),
  );
  return own;
}

/** Made when it is first asked for. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}

function kept(seconds: number): Record<string, string> {
  return { "cache-control": `public, max-age=${seconds}` };
}

/** The logo that Redoc would load from its maker's host. */
const foreignLogo = "https://cdn.redoc.ly/redoc/logo-mini.svg";

/** Beside this file as built (tsup.config.ts), in its package when the source runs. */
async function readScript(): Promise<Buffer> {
  const file = import.meta.url.endsWith(".ts")
    ? new URL("../../../node_modules/redoc/bundles/redoc.standalone.js", import.meta.url)
    : new URL("./redoc.js", import.meta.url);
  return Buffer.from((await readFile(file, "utf8")).replaceAll(foreignLogo, "data:,"));
}

const pageHeaders = htmlHeaders([
  "script-src 'self'",
  "connect-src 'self'",
  "style-src 'unsafe-inline'",
  "img-src data:",
  "worker-src blob:",
]);

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svc: the API</title>
<link rel="icon" href="data:,">
<style>body { margin: 0 }</style>
</head>
<body>
<redoc spec-url="openapi.json"></redoc>
<noscript>The description itself: <a href="openapi.json">openapi.json</a></noscript>
<script src="docs/redoc.js"></script>
</body>
</html>
`;

export const documentSchema = z
  .looseObject({ openapi: z.string(), info: z.looseObject({ title: z.string(), version: z.string() }) })
  .meta({ id: "Description" });

export const scriptText = z.string().describe("A script for browsers.");
