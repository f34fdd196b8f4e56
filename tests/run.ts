/**
 * `deno task test`: gives the machine a WebGPU adapter where it has none, runs `deno test` with the
 * given arguments, holds all WGSL that was compiled to the specification, and ends with the line
 * `N passed, N failed`.
 */
import { type Counts, countsLine, readCounts } from "./junit.ts";
import { CHECK, RECORD, RECORD_FOLDER } from "./wgsl/processes.ts";

// The loader of OpenGL complains on stderr where this is unset.
const ENV = { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp" };

interface Ended {
  readonly code: number;
  readonly counts: Counts;
}

/** Where there is no adapter, `doctor --fix` says what is wrong or mends it. */
async function setUp(): Promise<void> {
  Deno.env.set("XDG_RUNTIME_DIR", ENV.XDG_RUNTIME_DIR);
  const options = { powerPreference: "high-performance" } as const;
  if (await navigator.gpu?.requestAdapter(options)) return;
  const code = await deno(["run", "-A", "main.ts", "doctor", "--fix"]);
  // The tests that need no GPU still tell something.
  if (code !== 0) say("No WebGPU adapter: the tests that need one will fail.");
}

/** All that runs leaves its files in one folder: what tests passed, and the WGSL they compiled. */
async function run(args: readonly string[]): Promise<Ended> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    await Deno.mkdir(`${folder}/wgsl`);
    return await checkWgsl(folder, await runTests(folder, args));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Runs the tests one file after the other: a kernel on a software adapter takes all cores itself.
 */
async function runTests(folder: string, args: readonly string[]): Promise<Ended> {
  const junit = `${folder}/junit.xml`;
  const flags = ["-A", "--doc", ...RECORD, `--junit-path=${junit}`];
  const code = await deno(["test", ...flags, ...args], { [RECORD_FOLDER]: `${folder}/wgsl` });
  const xml = await Deno.readTextFile(junit).catch(() => ""); // absent after a crash
  return { code, counts: readCounts(xml, code) };
}

/** Adds one more test: all WGSL that the others compiled. None where they compiled none. */
async function checkWgsl(folder: string, { code, counts }: Ended): Promise<Ended> {
  const files = await Array.fromAsync(Deno.readDir(`${folder}/wgsl`));
  if (files.length === 0) return { code, counts };
  const refused = await deno([...CHECK, `${folder}/wgsl`]);
  const ended = refused === 0 ? "passed" : "failed";
  return { code: code || refused, counts: { ...counts, [ended]: counts[ended] + 1 } };
}

async function deno(args: readonly string[], env: Record<string, string> = {}): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: new URL("..", import.meta.url),
    env: { ...ENV, ...env },
    stdin: "null",
  }).spawn();
  return (await child.status).code;
}

function say(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

if (import.meta.main) {
  await setUp();
  const { code, counts } = await run(Deno.args);
  say(countsLine(counts));
  Deno.exit(code);
}
