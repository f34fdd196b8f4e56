/**
 * `deno task compile [--target linux-x64]`: writes one executable that contains Deno and the embedded model.
 * It is made from the bundle of `deno task bundle`, so it contains only the parts of packages that are used.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import denoJson from "../deno.json" with { type: "json" };
import { UsageError } from "../src/errors.ts";
import { outputOf, TARGETS } from "./release/targets.ts";
import { bundle } from "./bundle.ts";
import { runTool, say } from "./tool.ts";

const ROOT = new URL("../", import.meta.url);

/** Advice for a `deno compile` that failed with `stderr`; undefined if its own message suffices. */
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

/** The value of `--target`. @throws UsageError */
export function targetIn(args: readonly string[]): string | undefined {
  const { target } = parseArgs({ args: [...args], options: { target: { type: "string" } } }).values;
  if (target === undefined || Object.hasOwn(TARGETS, target)) return target;
  const names = Object.keys(TARGETS).join(", ");
  throw new UsageError(`Cannot compile for "${target}": allowed is one of ${names}`);
}

/**
 * Writes the executable. Deno's messages go to stderr.
 *
 * @param target a key of `TARGETS`; by default this system.
 * @returns Deno's exit code.
 */
export async function compile(target: string | undefined, output: string): Promise<number> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-compile-" });
  try {
    await bundle(`${folder}/eyrie.js`);
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["compile", "-A", "--no-check", "--no-config", "--no-lock"],
        ...denoJson.unstable.map((name) => `--unstable-${name}`),
        ...target === undefined ? [] : ["--target", TARGETS[target] ?? target],
        ...["--output", fileURLToPath(new URL(output, ROOT)), "eyrie.js"],
      ],
      // The executable contains nothing else of the clone, not even its path.
      cwd: folder,
      stdin: "null",
      stderr: "piped",
    }).spawn();
    const [stderr, { code }] = await Promise.all([passOn(child.stderr), child.status]);
    const advice = code === 0 ? undefined : compileAdvice(stderr, output);
    if (advice !== undefined) await say(Deno.stderr, `\n${advice}`);
    return code;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Copies the stream to our stderr as it comes, and returns its text without colours. */
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

if (import.meta.main) {
  await runTool(async (args) => {
    const target = targetIn(args);
    return await compile(target, outputOf(target));
  });
}
