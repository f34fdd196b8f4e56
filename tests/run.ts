/**
 * `deno task test`: gives the machine a WebGPU adapter where it has none, runs `deno test` with the
 * given arguments, and ends with the line `N passed, N failed`.
 */
import { type Counts, countsLine, readCounts } from "./junit.ts";

// The loader of OpenGL complains on stderr where this is unset.
const ENV = { XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp" };

/** Where there is no adapter, `doctor --fix` says what is wrong or mends it. */
async function setUp(): Promise<void> {
  Deno.env.set("XDG_RUNTIME_DIR", ENV.XDG_RUNTIME_DIR);
  const options = { powerPreference: "high-performance" } as const;
  if (await navigator.gpu?.requestAdapter(options)) return;
  const code = await deno("run", "-A", "main.ts", "doctor", "--fix");
  // The tests that need no GPU still tell something.
  if (code !== 0) say("No WebGPU adapter: the tests that need one will fail.");
}

/**
 * Runs the tests one file after the other: a kernel on a software adapter takes all cores itself.
 */
async function runTests(args: readonly string[]): Promise<{ code: number; counts: Counts }> {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  const junit = `${folder}/junit.xml`;
  try {
    const code = await deno("test", "-A", "--doc", `--junit-path=${junit}`, ...args);
    const xml = await Deno.readTextFile(junit).catch(() => ""); // absent after a crash
    return { code, counts: readCounts(xml, code) };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function deno(...args: readonly string[]): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: new URL("..", import.meta.url),
    env: ENV,
    stdin: "null",
  }).spawn();
  return (await child.status).code;
}

function say(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

if (import.meta.main) {
  await setUp();
  const { code, counts } = await runTests(Deno.args);
  say(countsLine(counts));
  Deno.exit(code);
}
