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

// A terminal sends these signals to both processes. If a signal came twice, Eyrie could not finish its work.
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
    // Deno itself, not the launcher of npm's package deno, which does not pass signals on.
    return createRequire(import.meta.url)("deno/install_api.cjs").runInstall();
  } catch (error) {
    fail(error instanceof Error ? error.message : String(error));
  }
}

function fail(why) {
  process.stderr.write(`eyrie: Cannot start Deno: ${why.split("\n")[0]}\n`);
  process.exit(1);
}
