// Checks of the machine: clock, disk, memory, open files, and who may read the files.
import { fail, listed, ok, unknown, warn, type Check } from "../check.ts";

const driftMs = 5_000;
const wrongMs = 300_000;
const lowDiskShare = 0.1;
const leastMemory = 512 * 1024 ** 2;
const leastFreeMemory = 128 * 1024 ** 2;
/** 1,000 SMTP sessions, 500 of HTTP, and as many deliveries. */
const leastFiles = 4_096;

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MB`;
const seconds = (ms: number): string => `${(Math.abs(ms) / 1000).toFixed(1)} s`;

export const machineChecks: readonly Check[] = [
  {
    id: "clock",
    about: "The machine's clock is right.",
    async run({ clockAheadMs }) {
      const ahead = await clockAheadMs();
      if (ahead === null)
        return unknown("no time server answered", "timedatectl says whether the clock is kept");
      const saw = `${seconds(ahead)} ${ahead < 0 ? "behind" : "ahead"}`;
      const off = Math.abs(ahead);
      if (off < driftMs) return ok(saw);
      const finding = off < wrongMs ? warn : fail;
      return finding(
        saw,
        "signatures, tokens and the Date field have the time in them; webhooks refuse one that is five minutes off",
        "timedatectl set-ntp true",
      );
    },
  },
  {
    id: "disk",
    about: "The disk of the data directory has room.",
    run({ disk, minFreeShare, dataDir }) {
      const { freeBytes, totalBytes } = disk();
      const share = totalBytes === 0 ? 1 : freeBytes / totalBytes;
      const saw = `${megabytes(freeBytes)} of ${megabytes(totalBytes)} are free at ${dataDir}`;
      const mend = "enlarge the disk, or keep less: retention.content, retention.messages";
      if (share <= minFreeShare) return Promise.resolve(fail(saw, "new mail is refused", mend));
      if (share <= Math.max(lowDiskShare, 2 * minFreeShare))
        return Promise.resolve(warn(saw, "new mail is refused below limits.min_free_space", mend));
      return Promise.resolve(ok(saw));
    },
  },
  {
    id: "memory",
    about: "The machine has memory for the service.",
    run({ memory }) {
      const { freeBytes, totalBytes } = memory();
      const saw = `${megabytes(freeBytes)} of ${megabytes(totalBytes)} are free`;
      return Promise.resolve(
        totalBytes < leastMemory || freeBytes < leastFreeMemory
          ? warn(
              saw,
              "at full rate svc takes about 350 MB; the kernel ends what does not fit",
              "add memory, or swap",
            )
          : ok(saw),
      );
    },
  },
  {
    id: "open-files",
    about: "The process may open enough files for its connections.",
    run({ openFiles, running }) {
      if (!running) return Promise.resolve(unknown("it is the running service's limit"));
      const files = openFiles();
      return Promise.resolve(
        files < leastFiles
          ? warn(
              `${files}`,
              "fewer connections are taken and kept than the limits allow",
              "LimitNOFILE=65536 in the unit, or ulimit -n",
            )
          : ok(files === Infinity ? "no limit" : `${files}`),
      );
    },
  },
  {
    id: "file-modes",
    about: "Nobody else can read the data, or write the configuration.",
    run({ file, dataDir, configFiles }) {
      const data = file(dataDir);
      if (data && (data.mode & 0o077) !== 0)
        return Promise.resolve(
          fail(
            `${dataDir} has mode ${data.mode.toString(8)}`,
            "others on this machine may read mail and keys",
            `chmod 700 ${dataDir}`,
          ),
        );
      const open = configFiles.filter((path) => ((file(path)?.mode ?? 0) & 0o022) !== 0);
      return Promise.resolve(
        open.length > 0
          ? fail(
              `${listed(open)} can be written by others`,
              "who writes it decides where mail goes",
              `chmod go-w ${open[0] ?? ""}`,
            )
          : ok("only the owner"),
      );
    },
  },
];
