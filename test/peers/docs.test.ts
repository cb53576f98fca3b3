// /docs in a real browser: it shows the API, asks no other host for anything, and its policy has nothing to refuse.
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAppliance, type Appliance } from "../support/appliance.ts";
import { visit } from "../support/browser.ts";

let appliance: Appliance;
beforeAll(async () => void (appliance = await startAppliance()));
afterAll(() => appliance.stop());

test("/docs shows every resource and asks this host alone", async () => {
  const base = `https://127.0.0.1:${appliance.httpPort}`;
  const { requests, complaints, text } = await visit(`${base}/docs`, "Send a message");
  for (const summary of ["List events in the order", "Create a webhook endpoint", "Receive message.bounced"])
    expect(text).toContain(summary);
  const foreign = requests.filter((url) => !url.startsWith(`${base}/`) && !/^(data|blob):/.test(url));
  expect(foreign).toEqual([]);
  expect(requests).toContain(`${base}/openapi.json`);
  expect(complaints).toEqual([]);
});
