import { UsageError } from "../src/errors.ts";
import type { Measured } from "./measure.ts";
import type { ServerInfo } from "./serve.ts";

/** A process that measures the kernels of one checkout. */
export interface Server extends AsyncDisposable {
  readonly info: ServerInfo;
  measure(name: string): Promise<Measured>;
}

const HARNESS = "lab/micro.ts";

/**
 * Starts the harness of the checkout in `folder`, with that checkout's kernels.
 *
 * @param called the name that the person gave it.
 * @throws UsageError if the folder has no harness.
 */
export async function openServer(folder: string, called: string): Promise<Server> {
  const there = await Deno.stat(`${folder}/${HARNESS}`).then(({ isFile }) => isFile, () => false);
  if (!there) {
    throw new UsageError(
      `Cannot compare with "${called}": it has no ${HARNESS}; its kernels cannot be timed`,
    );
  }
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", HARNESS, "--serve"],
    cwd: folder,
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const input = child.stdin.getWriter();
  const lines = linesOf(child.stdout);
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`the harness of "${called}" ended early`);
    return value;
  };
  const info: ServerInfo = JSON.parse(await next());
  return {
    info,
    async measure(name) {
      await input.write(new TextEncoder().encode(`${name}\n`));
      return JSON.parse(await next());
    },
    async [Symbol.asyncDispose]() {
      await input.close().catch(() => {}); // broken if the child has already ended
      await child.status;
    },
  };
}

async function* linesOf(
  bytes: ReadableStream<Uint8Array<ArrayBuffer>>,
): AsyncGenerator<string, void> {
  let rest = "";
  for await (const piece of bytes.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
