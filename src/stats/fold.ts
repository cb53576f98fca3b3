// The job `fold-stats`: folds the counters that each batch of writes left behind into days and quarters of an hour.
// Statistics are exact without it, since a reader folds what is left first; the job keeps that remainder small.
import type { HasJobs } from "../service.ts";
import type { Store } from "../store/store.ts";

export function createStatsFold(store: Pick<Store, "foldStats">): HasJobs {
  return { jobs: [{ name: "fold-stats", cron: "*/10 * * * * *", run: () => store.foldStats() }] };
}
