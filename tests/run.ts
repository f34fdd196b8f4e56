/**
 * `deno task test`: gives the machine a WebGPU adapter where it has none, checks types, runs the test
 * files in processes of one or several, a few at a time, holds all WGSL that was compiled to the
 * specification, and ends with the line `N passed, N failed`. `--all` adds the exhaustive tests (exhaustive.ts),
 * `--changed[=COMMIT]` runs only the files that a change can touch (changed.ts).
 */
import { existsSync } from "node:fs";
import { UsageError } from "../src/errors.ts";
import { guessBackend } from "../src/gpu/backend.ts";
import { changedTests } from "./changed.ts";
import { ALL_VARIABLE, SEED, SEED_VARIABLE } from "./exhaustive.ts";
import { type Arguments, processesOf, readArguments, testFiles } from "./files.ts";
import {
  type Counts,
  countsLine,
  countTests,
  endedWell,
  readTests,
  slowestLines,
  sumCounts,
  type TestCase,
} from "./junit.ts";
import { FILES_VARIABLE } from "./together.ts";
import { CHECK, RECORD, RECORD_FOLDER } from "./wgsl/processes.ts";

const ROOT = new URL("..", import.meta.url);
/** deno.lock names what users download: packages that only tests import are in a lock of their own. */
const LOCK = ["--lock", "tests/deno.lock"];
const CORES = navigator.hardwareConcurrency;
/**
 * `deno test --parallel` heeds DENO_JOBS too. One more than cores, as each waits for its device now and
 * then; more than a few would fill a GPU's memory.
 */
const PROCESSES = Number(Deno.env.get("DENO_JOBS")) || Math.min(CORES + 1, 4);

const HOME = Deno.env.get("HOME");
const MESA_CACHE = Deno.env.get("MESA_SHADER_CACHE_DIR") ?? Deno.env.get("XDG_CACHE_HOME") ??
  (HOME && `${HOME}/.cache`);

const ENV = {
  // The loader of OpenGL complains on stderr where this is unset.
  XDG_RUNTIME_DIR: Deno.env.get("XDG_RUNTIME_DIR") ?? "/tmp",
  // Programs that tests start read no config file of the person who runs them.
  EYRIE_CONFIG: Deno.build.os === "windows" ? "NUL" : "/dev/null",
  // Mesa's compiled shaders, where it keeps them anyway: tests that set HOME or XDG_CACHE_HOME compile none again.
  ...MESA_CACHE ? { MESA_SHADER_CACHE_DIR: MESA_CACHE } : {},
  // Threads of Mesa's software adapter in each process: all processes together use the cores. With 0 the thread that
  // takes submissions does the work itself, which saves waking another thread, up to a twentieth of all time.
  LP_NUM_THREADS: Deno.env.get("LP_NUM_THREADS") ?? `${CORES / PROCESSES | 0}`,
};

/** Where code blocks of comments may be; they are tests too. */
const DOCUMENTED = ["README.md", "main.ts", "src", "kernels", "lab", "tools"];

/** A file that takes longer does not end: it is killed and counts as failed. */
const MAX_MINUTES = 30;

interface Job {
  readonly name: string;
  /** Arguments of `deno test`. */
  readonly args: readonly string[];
  /** The files of a job that has several, see together.ts. */
  readonly files?: readonly string[];
}

/** What the jobs of a run have in common. */
interface Shared {
  readonly env: Readonly<Record<string, string>>;
  readonly clock: CpuClock;
}

interface Ended {
  readonly name: string;
  readonly counts: Counts;
  readonly tests: readonly TestCase[];
  /** What it printed, where it failed. */
  readonly said?: string;
}

/** Lines that a failed job printed last, told again at the end: logs are often read from there. */
const LAST_LINES = 30;

/** Where there is no adapter, or OpenGL's alone, `doctor --fix` says what is wrong or mends it. */
async function setUp(): Promise<void> {
  Deno.env.set("XDG_RUNTIME_DIR", ENV.XDG_RUNTIME_DIR);
  const options = { powerPreference: "high-performance" } as const;
  const adapter = await navigator.gpu?.requestAdapter(options);
  const forced = Deno.env.get("DENO_WEBGPU_BACKEND");
  if (adapter && (forced || guessBackend(Deno.build.os, adapter.limits, forced) !== "gl")) return;
  const { code } = await deno(["run", "-A", "main.ts", "doctor", "--fix"]);
  // The tests that need no GPU still tell something.
  if (code !== 0) say("No WebGPU adapter: the tests that need one will fail.");
}

/** @throws UsageError where a path is not there, or no tests are. */
function jobsOf({ flags, paths, all, changedSince }: Arguments): Job[] {
  const named = testFiles(paths.length > 0 ? paths : ["tests"], ROOT.pathname, { all });
  const files = changedSince === undefined
    ? named
    : changedTests(named, changedSince, ROOT.pathname);
  if (changedSince !== undefined) say(`${files.length} of ${named.length} files`);
  else if (files.length === 0) {
    throw new UsageError(`Cannot test "${paths.join(" ")}": no tests there`);
  }
  const docs = { name: "code in comments", args: [...flags, "--doc", ...DOCUMENTED] };
  const jobOf = (file: string): Job => ({ name: file, args: [...flags, file] });
  const together = (files: readonly string[]): Job => ({
    name: `${files.length} files from ${files[0]} on`,
    args: [...flags, "tests/together.ts"],
    files,
  });
  return [
    ...processesOf(files, ROOT.pathname).map((files) =>
      files.length === 1 ? jobOf(files[0] as string) : together(files)
    ),
    ...paths.length > 0 ? [] : [docs],
  ];
}

/** Checks types once, then runs the jobs, then adds one more test: all WGSL that they compiled. */
async function run(
  { paths, all, changedSince }: Arguments,
  jobs: readonly Job[],
): Promise<Ended[]> {
  const isPart = paths.length > 0 || changedSince !== undefined;
  const files = isPart
    ? jobs.flatMap(({ name, files = [name] }) => files).filter((name) => name.endsWith(".ts"))
    : [];
  // Without files it checks everything.
  const checked = isPart && files.length === 0 ? ["main.ts"] : files;
  const clock = openCpuClock();
  const { code } = await deno(["check", "--quiet", ...LOCK, ...checked]);
  sayCpu(clock(), "types");
  if (code !== 0) return [{ name: "types", counts: countTests([], code), tests: [] }];
  // All leave their files in one folder: what tests passed, and the WGSL they compiled.
  const folder = await Deno.makeTempDir({ prefix: "eyrie-test-" });
  try {
    await Deno.mkdir(`${folder}/wgsl`);
    const ended: Ended[] = [];
    const queue = [...jobs.entries()];
    await Promise.all(Array.from({ length: PROCESSES }, async () => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const env = { [RECORD_FOLDER]: `${folder}/wgsl`, ...all && { [ALL_VARIABLE]: "1" } };
        ended.push(...await runJob(next[1], `${folder}/${next[0]}.xml`, { env, clock }));
      }
    }));
    return [...ended, ...await checkWgsl(`${folder}/wgsl`, clock)];
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Tells a job in a line when it is done, and all it printed where it failed. */
async function runJob(
  job: Job,
  junit: string,
  shared: Shared,
): Promise<Ended[]> {
  const { name, args, files } = job;
  const { env, clock } = shared;
  const flags = ["-A", "--no-check", ...LOCK, ...RECORD, `--junit-path=${junit}`];
  const begun = performance.now();
  const { code, signal, text } = await deno(["test", ...flags, ...args], {
    env: { ...env, ...files && { [FILES_VARIABLE]: files.join(" ") } },
    keep: true,
  });
  const seconds = (performance.now() - begun) / 1000;
  const cpu = clock();
  const tests = readTests(await Deno.readTextFile(junit).catch(() => "")); // absent after a crash
  const late = signal !== null && endedWell(text);
  const counts = countTests(tests, late ? 0 : code);
  if (late) say(`${name}: ${signal} at the end of its process, after its last test`);
  if (counts.failed > 0) say(`${text}\nFAILED ${name}: ${signal ?? `exit code ${code}`}`);
  // A filter leaves nothing of most files.
  if (tests.length > 0) {
    const times = [`${seconds.toFixed(1).padStart(7)} s`, ...cpu === undefined ? [] : [cpu]];
    say(`${times.join(", ")}  ${name}: ${countsLine(counts)}`);
  }
  if (files && counts.failed > 0) {
    // A report says nothing of a file that did not load, and is not written where the process crashed.
    return countTests(tests, 0).failed > 0
      ? endedByFile(tests, text)
      : await runAlone(job, junit, shared);
  }
  return [{ name, counts, tests, ...counts.failed > 0 && { said: text } }];
}

/**
 * Runs the files of a job that ended badly without a failed test again, each by itself. That it did is a failure
 * anyway.
 */
async function runAlone(
  { name, args, files = [] }: Job,
  junit: string,
  shared: Shared,
): Promise<Ended[]> {
  const ended: Ended[] = [];
  for (const file of files) {
    await Deno.remove(junit).catch(() => {}); // absent, where the one before crashed
    ended.push(...await runJob({ name: file, args: [...args.slice(0, -1), file] }, junit, shared));
  }
  if (ended.some(({ counts }) => counts.failed > 0)) return ended;
  const said = "The process of these files ended badly without a failed test; alone, each passes.";
  return [...ended, { name, counts: countTests([], 1), tests: [], said }];
}

/** What became of each file of a job that failed. */
function endedByFile(tests: readonly TestCase[], said: string): Ended[] {
  return Map.groupBy(tests, ({ file }) => file).entries().map(([name, tests]) => {
    const counts = countTests(tests, 0);
    return { name, counts, tests, ...counts.failed > 0 && { said } };
  }).toArray();
}

async function checkWgsl(folder: string, clock: CpuClock): Promise<Ended[]> {
  const files = await Array.fromAsync(Deno.readDir(folder));
  if (files.length === 0) return [];
  const { code, text } = await deno([...CHECK, folder], { keep: true });
  say(text);
  sayCpu(clock(), "WGSL by Tint");
  const counts = { passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: 0 };
  return [{ name: "WGSL by Tint", counts, tests: [], ...counts.failed > 0 && { said: text } }];
}

/** Runs deno in the checkout's root. With `keep` what it prints is returned instead of shown. */
async function deno(
  args: readonly string[],
  { env = {}, keep = false }: { readonly env?: Record<string, string>; readonly keep?: boolean } =
    {},
): Promise<{ code: number; signal: Deno.Signal | null; text: string }> {
  const out = keep ? "piped" : "inherit";
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    env: { ...ENV, ...env },
    stdin: "null",
    stdout: out,
    stderr: out,
    signal: AbortSignal.timeout(MAX_MINUTES * 60_000),
  }).spawn();
  const texts = keep
    ? [child.stdout, child.stderr].map((stream) => new Response(stream).text())
    : [];
  const { code, signal } = await child.status;
  return { code, signal, text: (await Promise.all(texts)).join("") };
}

/**
 * CPU time of the processes that this one started and that have ended, with what they started, in seconds.
 * Undefined where the system has no /proc: only Linux is asked.
 */
function childrenCpu(): number | undefined {
  if (!existsSync("/proc/self/stat")) return undefined;
  // proc_pid_stat(5): after the name in parentheses come fields 3 and on; cutime and cstime are 16 and 17.
  const fields = Deno.readTextFileSync("/proc/self/stat").replace(/^.*\) /s, "").split(" ");
  return (Number(fields[16 - 3]) + Number(fields[17 - 3])) / 100; // USER_HZ
}

/** Says, as a run prints it, the CPU time since it was last asked; undefined where the system does not tell. */
type CpuClock = () => string | undefined;

/**
 * Counts processes that have ended: asked when one ends, it says what that one took, unless two end at the same
 * moment.
 */
function openCpuClock(): CpuClock {
  let before = 0;
  return () => {
    const cpu = childrenCpu();
    if (cpu === undefined) return undefined;
    const since = cpu - before;
    before = cpu;
    return `CPU ${since.toFixed(1).padStart(5)} s`;
  };
}

/** @param begun when the run began, as `performance.now` says. */
function timeLine(begun: number): string {
  const minutes = (seconds: number) => `${(seconds / 60).toFixed(1)} minutes`;
  const cpu = childrenCpu();
  const wall = minutes((performance.now() - begun) / 1000);
  return cpu === undefined ? wall : `${wall}, ${minutes(cpu)} of CPU`;
}

function sayCpu(cpu: string | undefined, what: string): void {
  if (cpu !== undefined) say(`${" ".repeat(11)}${cpu}  ${what}`);
}

function say(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

async function main(args: readonly string[]): Promise<number> {
  const begun = performance.now();
  const read = readArguments(args);
  const jobs = jobsOf(read); // before what takes long
  await setUp();
  const ended = await run(read, jobs);
  say(
    `\nThe slowest tests:\n${slowestLines(ended.flatMap(({ tests }) => tests), 20).join("\n")}\n`,
  );
  const failed = ended.filter(({ counts }) => counts.failed > 0);
  for (const { name, counts, said = "" } of failed) {
    say(`${said.trimEnd().split("\n").slice(-LAST_LINES).join("\n")}\n`);
    say(`FAILED ${name}: ${countsLine(counts)}`);
  }
  say(`drawn by ${SEED_VARIABLE}=${SEED}`);
  say(timeLine(begun));
  say(countsLine(sumCounts(ended.map(({ counts }) => counts))));
  return failed.length > 0 ? 1 : 0;
}

if (import.meta.main) {
  const code = await main(Deno.args).catch((error: unknown) => {
    if (!(error instanceof UsageError)) throw error;
    Deno.stderr.writeSync(new TextEncoder().encode(`${error.message}\n`));
    return 2;
  });
  Deno.exit(code);
}
