#!/usr/bin/env node
// Starts Eyrie in the Deno that npm's package deno brings: no shell, so arguments arrive as they are.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const FLAGS = [
  "run",
  "--allow-all",
  "--no-config",
  "--no-lock",
  "--node-modules-dir=none",
  "--unstable-no-legacy-abort",
];

const deno = denoPath();
const program = fileURLToPath(new URL("../eyrie.js", import.meta.url));
const child = spawn(deno, [...FLAGS, program, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, DENO_NO_PACKAGE_JSON: "1", DENO_NO_UPDATE_CHECK: "1" },
});
child.on("error", (error) => fail(error.message));

// A terminal sends these to both processes; a second one would not let Eyrie finish.
const terminal = process.platform === "win32" || process.stdin.isTTY || process.stdout.isTTY ||
  process.stderr.isTTY;
const listeners = new Map([
  ["SIGINT", () => terminal || child.kill("SIGINT")],
  ["SIGHUP", () => terminal || child.kill("SIGHUP")],
  ["SIGTERM", () => child.kill("SIGTERM")],
]);
for (const [name, listener] of listeners) process.on(name, listener);

child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code ?? 1);
  for (const [name, listener] of listeners) process.off(name, listener);
  process.kill(process.pid, signal);
});

function denoPath() {
  try {
    // Not its own launcher: that one passes no signals on.
    return createRequire(import.meta.url)("deno/install_api.cjs").runInstall();
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

function fail(why) {
  process.stderr.write(`eyrie: Cannot start Deno: ${why.split("\n")[0]}\n`);
  process.exit(1);
}
