// The calls of MTA-STS policies, kept for as long as they say.
import type { KeptMtaStsPolicy } from "../../model/mta-sts.ts";

export interface MtaStsStore {
  /** As it was fetched last, expired or not. */
  mtaStsPolicy(domain: string): Promise<KeptMtaStsPolicy | null>;
  /** Replaces the domain's. Expired ones of others go. */
  putMtaStsPolicy(policy: KeptMtaStsPolicy): Promise<void>;
}
