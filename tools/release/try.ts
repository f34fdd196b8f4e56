/**
 * `deno task release:try [--gpu] FILE`: starts an executable of Eyrie in an empty folder, `--version`
 * first, then one answer of the embedded model where the machine has a WebGPU adapter; with `--gpu` a
 * machine without one fails.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import denoJson from "../../deno.json" with { type: "json" };
import { operandIn, runTool, say } from "../tool.ts";

/** The embedded model's own answer at temperature 0. */
export const PROMPT = "Count from 1 to 9.";
export const ANSWER = "1, 2, 3, 4, 5, 6, 7, 8, 9.\n";

/** Ample for a shader compiler on a small machine. */
const LIMIT_MS = 300_000;

/** A program and the arguments that all its starts begin with. */
export type Program = readonly [string, ...string[]];

/** The exit code and the output of a run of a program. */
export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a program in a folder to its end, without input. */
export async function runIn(cwd: string, program: Program, args: readonly string[]): Promise<Ran> {
  const [file, ...first] = program;
  const { code, stdout, stderr } = await new Deno.Command(file, {
    args: [...first, ...args],
    cwd,
    stdin: "null",
    signal: AbortSignal.timeout(LIMIT_MS),
  }).output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

/** @throws Error if the program prints anything else than `out`, or does not end with code 0. */
export async function prints(
  cwd: string,
  program: Program,
  { args, out }: { readonly args: readonly string[]; readonly out: string },
): Promise<void> {
  const ran = await runIn(cwd, program, args);
  if (ran.code === 0 && ran.out.replaceAll("\r\n", "\n") === out) return;
  throw new Error(
    `Cannot use "${program.join(" ")}": "${args.join(" ")}" ended with ${ran.code} and printed ` +
      `${JSON.stringify(ran.out)} for ${JSON.stringify(out)}\n${ran.err}`,
  );
}

/**
 * Starts a program as a user would, in a folder that holds nothing else.
 *
 * @param adapter whether the machine has a WebGPU adapter. Without one the program is not asked for an answer.
 * @returns one line for each check that was made.
 * @throws Error if a run ends or prints otherwise than expected.
 */
export async function tryProgram(program: Program, adapter: boolean): Promise<string[]> {
  const cwd = await Deno.makeTempDir({ prefix: "eyrie-try-" });
  try {
    await prints(cwd, program, { args: ["--version"], out: `eyrie ${denoJson.version}\n` });
    const version = `eyrie --version: ${denoJson.version}`;
    if (!adapter) return [version, "no WebGPU adapter here: eyrie generate was not tried"];
    const args = ["generate", "--quiet", "--temperature", "0", PROMPT];
    await prints(cwd, program, { args, out: ANSWER });
    return [version, `eyrie generate: ${ANSWER.trim()}`];
  } finally {
    await Deno.remove(cwd, { recursive: true });
  }
}

/** Whether Deno finds a WebGPU adapter. */
export async function hasAdapter(): Promise<boolean> {
  return Boolean(await navigator.gpu?.requestAdapter());
}

if (import.meta.main) {
  await runTool(async (args) => {
    const options = { gpu: { type: "boolean" } } as const;
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
    });
    const file = operandIn(positionals, "release:try", "FILE");
    const adapter = await hasAdapter();
    if (values.gpu === true && !adapter) {
      throw new Error(`Cannot try "${file}" with --gpu: there is no WebGPU adapter`);
    }
    for (const line of await tryProgram([resolve(file)], adapter)) await say(Deno.stdout, line);
    return 0;
  });
}
