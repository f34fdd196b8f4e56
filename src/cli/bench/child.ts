import { TURNS_VARIABLE } from "./turns.ts";

/** A process of `eyrie bench`. */
export interface BenchChild {
  /** What it writes to standard output. */
  readonly lines: AsyncIterator<string>;
  /** Lets it begin its next block. */
  go(): Promise<void>;
  /** Interrupts the process like Ctrl+C. */
  interrupt(): void;
  /** Its exit code. */
  readonly ended: Promise<number>;
}

/** @param onLine gets the lines of its standard error. */
export type StartChild = (
  args: readonly string[],
  onLine: (line: string) => void,
) => BenchChild;

/** Starts the same program once more. */
export function startChild(args: readonly string[], onLine: (line: string) => void): BenchChild {
  const program = Deno.build.standalone ? [] : ["run", "-A", Deno.mainModule];
  const child = new Deno.Command(Deno.execPath(), {
    args: [...program, ...args],
    env: { [TURNS_VARIABLE]: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const stdin = child.stdin.getWriter();
  const errors = linesOf(child.stderr);
  const reading = (async () => {
    for await (const line of errors) onLine(line);
  })();
  return {
    lines: linesOf(child.stdout),
    // A process that has ended cannot be written to; it needs no turn.
    go: async () => await stdin.write(new TextEncoder().encode("\n")).catch(() => {}),
    interrupt() {
      try {
        child.kill("SIGINT");
      } catch {
        // It has ended.
      }
    },
    ended: child.status.then(async ({ code }) => {
      await reading;
      return code;
    }),
  };
}

/** Whole lines; a last one without its end counts too. */
async function* linesOf(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string, void, void> {
  let rest = "";
  for await (const text of stream.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}
