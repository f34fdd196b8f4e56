/**
 * `deno task compile [--target linux-x64]`: one executable with shaders, presets and the embedded
 * model inside.
 */
import { parseArgs } from "node:util";
import { UsageError } from "../src/errors.ts";
import { outputOf, TARGETS } from "./release/targets.ts";
import { runTool } from "./tool.ts";

const ROOT = new URL("../", import.meta.url);

// Shaders and the presets that are imported are in the module graph; what is read from disk at run
// time has to be named.
const INCLUDED = ["models", "presets"];

/** Advice for a `deno compile` that failed with `stderr`; undefined where its own message suffices. */
export function compileAdvice(stderr: string, output = "dist/eyrie"): string | undefined {
  const url = /https:\/\/\S*denort\S*?\.zip/.exec(stderr)?.[0];
  if (url === undefined || !/error sending request|Setting up base binary/.test(stderr)) {
    return undefined;
  }
  return [
    `Cannot compile "${output}": the runtime base could not be downloaded`,
    `  from ${url}`,
    "  Everything up to that download went well. Put a denort of the same version on this machine",
    "  and name it: DENORT_BIN=/path/to/denort deno task compile",
    "  Without one, `deno task bundle` makes a single file that any deno runs.",
  ].join("\n");
}

/** What `--target` says. @throws UsageError */
export function targetIn(args: readonly string[]): string | undefined {
  const { target } = parseArgs({ args: [...args], options: { target: { type: "string" } } }).values;
  if (target === undefined || Object.hasOwn(TARGETS, target)) return target;
  const names = Object.keys(TARGETS).join(", ");
  throw new UsageError(`Cannot compile for "${target}": allowed is one of ${names}`);
}

async function compile(args: readonly string[]): Promise<number> {
  const target = targetIn(args);
  const output = outputOf(target);
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "compile",
      "-A",
      "--exclude-unused-npm",
      ...target === undefined ? [] : ["--target", TARGETS[target] ?? target],
      ...await includeFlags(),
      "--output",
      output,
      "main.ts",
    ],
    cwd: ROOT,
    stdin: "null",
    stderr: "piped",
  }).spawn();
  const [stderr, { code }] = await Promise.all([passOn(child.stderr), child.status]);
  const advice = code === 0 ? undefined : compileAdvice(stderr, output);
  if (advice !== undefined) await Deno.stderr.write(new TextEncoder().encode(`\n${advice}\n`));
  return code;
}

async function includeFlags(): Promise<string[]> {
  const there = await Array.fromAsync(Deno.readDir(ROOT), ({ name }) => name);
  return INCLUDED.filter((name) => there.includes(name)).flatMap((name) => ["--include", name]);
}

/** Copies to our stderr as it comes, and gives the text without colours. */
async function passOn(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of stream) {
    await Deno.stderr.write(piece);
    text += decoder.decode(piece, { stream: true });
  }
  // deno-lint-ignore no-control-regex
  return text.replaceAll(/\x1b\[[0-9;]*m/g, "");
}

if (import.meta.main) await runTool(compile);
