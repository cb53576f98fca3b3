// What all other modules stand on: this start of the program, the resolver, certificates, threads, and the senders.
import { createBoot } from "../boot.ts";
import { createTrust } from "../delivery/trust.ts";
import { createRecorder } from "../events/record.ts";
import { createHttps } from "../https.ts";
import { theNode } from "../model/node.ts";
import { createMaintenance } from "../maintenance/maintenance.ts";
import { createParsing } from "../parsing/parsing.ts";
import { endAtOnce, resolverOf } from "../setup.ts";
import { createSigning } from "../signing/signing.ts";
import { openTls } from "../tls/tls.ts";
import type { Base } from "./base.ts";
import { createSenders } from "./senders.ts";

export type Foundation = Awaited<ReturnType<typeof createFoundation>>;

export async function createFoundation(base: Base) {
  const { config, log, clock, mint, store } = base;
  const boot = createBoot({
    store,
    node: theNode,
    clock,
    log: log.component("boot"),
    onEnded: endAtOnce,
  });
  const owner = boot.id;
  const resolver = resolverOf(config, clock, log);
  const secureContext = createTrust();
  const tls = await openTls({
    config,
    isTrackingName: store.isTrackingName,
    trackingNames: store.trackingNames,
    // The operator names the ACME server: it may be one of a private network.
    https: createHttps({ resolver, allowNetworks: ["0.0.0.0/0", "::/0"], secureContext, clock }),
    clock,
    log: log.component("tls"),
  });
  const { certificates } = tls;
  const maintenance = createMaintenance({ store, clock });
  await maintenance.reload();
  const recorder = createRecorder({ clock, mint });
  const signing = createSigning(log.component("signing"));
  const { signHeader } = signing;
  const parsing = createParsing({ clock, log: log.component("parsing") });
  const senders = await createSenders(base, resolver, recorder);
  return {
    boot,
    owner,
    resolver,
    secureContext,
    tls,
    certificates,
    maintenance,
    recorder,
    signing,
    signHeader,
    parsing,
    ...senders,
  };
}
