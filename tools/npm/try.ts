/**
 * `deno task npm:try [TARBALL]`: installs the package in an empty folder and uses it as a user would;
 * by default the one that `deno task npm:pack` made.
 */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import denoJson from "../../deno.json" with { type: "json" };
import { ANSWER, hasAdapter, prints, type Program, PROMPT, runIn } from "../release/try.ts";
import { runTool, say } from "../tool.ts";
import { npmProgram } from "./npm.ts";

/** An argument that a shell would change. */
const ODD = `a "b" $HOME %PATH% *'`;

/**
 * Installs a tarball and uses it: version, answer, exit code, arguments, signals.
 *
 * @param adapter whether the machine has a WebGPU adapter. Without one no answer is asked for.
 * @returns one line for each check that was made.
 * @throws Error if a check fails.
 */
export async function tryPackage(path: string, adapter: boolean): Promise<string[]> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie npm try " });
  try {
    const install = ["install", "--no-audit", "--no-fund", "--prefer-offline", resolve(path)];
    const { code, err } = await runIn(folder, npmProgram("npm"), install);
    if (code !== 0) throw new Error(`Cannot install "${path}": npm ended with ${code}\n${err}`);
    const npx: Program = [...npmProgram("npx"), "eyrie"];
    const launcher: Program = ["node", `${folder}/node_modules/eyrie/bin/eyrie.mjs`];
    await prints(folder, npx, { args: ["--version"], out: `eyrie ${denoJson.version}\n` });
    await passesArguments(folder, launcher);
    const tried = [`npx eyrie --version: ${denoJson.version}`, `exit codes and arguments: ${ODD}`];
    if (!adapter) return [...tried, "no WebGPU adapter here: eyrie generate was not tried"];
    const args = ["generate", "--quiet", "--temperature", "0", PROMPT];
    await prints(folder, npx, { args, out: ANSWER });
    const answered = [...tried, `npx eyrie generate: ${ANSWER.trim()}`];
    if (Deno.build.os === "windows") return answered;
    await passesSignals(folder, launcher);
    return [...answered, "signals: SIGTERM ends eyrie serve in order, SIGINT ends eyrie generate"];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Checks that an unknown command is reported exactly as typed, with exit code 2. */
async function passesArguments(folder: string, launcher: Program): Promise<void> {
  const { code, err } = await runIn(folder, launcher, [ODD]);
  if (code === 2 && err.startsWith(`eyrie: Cannot run "${ODD}": `)) return;
  throw new Error(`Cannot use the launcher: ${JSON.stringify(ODD)} came to ${code}, ${err}`);
}

async function passesSignals(folder: string, launcher: Program): Promise<void> {
  const serve = await ended(folder, launcher, {
    args: ["serve", "--quiet", "--port", "0"],
    begun: /^http:/,
    signal: "SIGTERM",
  });
  if (serve.code !== 0) throw new Error(`Cannot end eyrie serve: SIGTERM came to ${told(serve)}`);
  const generate = await ended(folder, launcher, {
    args: ["generate", "--quiet", "--ignore-eos", "--max-tokens", "2000", PROMPT],
    begun: /\d/,
    signal: "SIGINT",
  });
  if (generate.signal !== "SIGINT") {
    throw new Error(`Cannot end eyrie generate: SIGINT came to ${told(generate)}`);
  }
}

/** Sends a signal to the launcher alone once the program's output matches `begun`. Returns how the launcher ended. */
async function ended(
  cwd: string,
  [file, ...first]: Program,
  { args, begun, signal }: {
    readonly args: readonly string[];
    readonly begun: RegExp;
    readonly signal: Deno.Signal;
  },
): Promise<Deno.CommandStatus> {
  const child = new Deno.Command(file, {
    args: [...first, ...args],
    cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  let text = "";
  // When stdout ends, the program itself has ended, not only its launcher.
  for await (const piece of child.stdout.pipeThrough(new TextDecoderStream())) {
    const before = begun.test(text);
    text += piece;
    if (!before && begun.test(text)) child.kill(signal);
  }
  return await child.status;
}

function told({ code, signal }: Deno.CommandStatus): string {
  return signal ?? `exit code ${code}`;
}

if (import.meta.main) {
  await runTool(async ([path]) => {
    const dist = fileURLToPath(new URL("../../dist", import.meta.url));
    const lines = await tryPackage(
      path ?? `${dist}/eyrie-${denoJson.version}.tgz`,
      await hasAdapter(),
    );
    for (const line of lines) await say(Deno.stdout, line);
    return 0;
  });
}
