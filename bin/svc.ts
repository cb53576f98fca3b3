// The program's entry. It refuses a Node.js that is too old in one plain sentence
// before anything is loaded that would crash there, then hands the command line
// to the CLI. `serve` is loaded only by the command that needs it.
const oldest = 24;
const found = Number(process.versions.node.split(".")[0]);

if (found < oldest) {
  process.stderr.write(
    `svc needs Node.js ${oldest} or newer and this is ${process.versions.node}. Install Node.js 26 LTS and run it again.\n`,
  );
  process.exit(1);
} else {
  const { main } = await import("../src/cli/main.ts");
  process.exitCode = await main(process.argv, async () => {
    const [{ serve }, { initialise }, { backupOffline, checkOffline, doctorOffline, migrate, restore }] =
      await Promise.all([import("../src/daemon.ts"), import("../src/setup.ts"), import("../src/offline.ts")]);
    return { serve, initialise, backupOffline, checkOffline, doctorOffline, migrate, restore };
  });
}
