/**
 * `deno task bench:micro [--against REF|DIR] [--blocks N] [NAME...]`: times single kernels, those
 * whose case's name contains a NAME, and compares them with another checkout's. `--against .` shows
 * the noise.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { reason, UsageError } from "../src/errors.ts";
import { type Checkout, openCheckout } from "./checkout.ts";
import { groupsOf, hereFirst, matching, type Pairs, table } from "./compare.ts";
import type { Measured } from "./measure.ts";
import { serve } from "./serve.ts";
import { openServer, type Server } from "./server.ts";

const USAGE = "deno task bench:micro [--against REF|DIR] [--blocks N] [NAME...]";
const ROOT = new URL("..", import.meta.url).pathname;
const BLOCKS = { alone: 1, compared: 9 };

interface Asked {
  readonly against: string | undefined;
  readonly blocks: number;
  readonly names: readonly string[];
  readonly serve: boolean;
}

/** @throws UsageError */
export function parse(args: readonly string[]): Asked {
  const options = {
    against: { type: "string" },
    blocks: { type: "string" },
    serve: { type: "boolean", default: false },
  } as const;
  const { values, positionals: names } = (() => {
    try {
      return parseArgs({ args: [...args], options, allowPositionals: true });
    } catch (error) {
      const [why] = reason(error).split(". ");
      throw new UsageError(`Cannot run "bench:micro": ${why}; usage: ${USAGE}`);
    }
  })();
  const { against, serve } = values;
  const blocks = values.blocks === undefined
    ? against === undefined ? BLOCKS.alone : BLOCKS.compared
    : Number(values.blocks);
  if (!Number.isInteger(blocks) || blocks < 1 || blocks > 1000) {
    throw new UsageError(
      `Cannot use "--blocks ${values.blocks}": allowed is an integer from 1 to 1000`,
    );
  }
  return { against, blocks, names, serve };
}

/** Measures and prints. What was opened is closed and removed, also on an error and on Ctrl+C. */
async function compare({ against, blocks, names }: Asked, signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const checkout: Checkout | undefined = against === undefined
    ? undefined
    : stack.use(await openCheckout(against, ROOT));
  // The other one first: it may have no harness.
  const there = checkout && stack.use(await openServer(checkout.folder, against ?? ""));
  const here = stack.use(await openServer(ROOT, "this checkout"));
  const cases = matching(here.info.cases, names);
  if (cases.length === 0) {
    throw new UsageError(
      `Cannot time "${names.join(" ")}": lab/cases has no case of that name, there are ` +
        groupsOf(here.info.cases).join(", "),
    );
  }
  const known = new Set(there?.info.cases);
  const shared = cases.filter((name) => there === undefined || known.has(name));
  for (const name of cases) if (!shared.includes(name)) tell(`only here: ${name}`);
  const rows: Pairs[] = [];
  for (const [i, name] of shared.entries()) {
    if (signal.aborted) break;
    tell(`${i + 1} of ${shared.length}: ${name}`);
    rows.push(await measure(name, { here, there, blocks }));
  }
  const head = `device ${here.info.device}, ${blocks} block${blocks === 1 ? "" : "s"}`;
  process.stdout.write(`${head}\n\n${table(rows, against)}\n`);
}

/** Block by block both sides, taking turns at being first. */
async function measure(
  name: string,
  { here, there, blocks }: { here: Server; there: Server | undefined; blocks: number },
): Promise<Pairs> {
  const pairs = { name, here: [] as Measured[], there: [] as Measured[] };
  const sides = [{ server: here, runs: pairs.here }, { server: there, runs: pairs.there }];
  for (let block = 0; block < blocks; block++) {
    for (const { server, runs } of hereFirst(block) ? sides : sides.toReversed()) {
      if (server) runs.push(await server.measure(name));
    }
  }
  return pairs;
}

function tell(line: string): void {
  process.stderr.write(`${line}\n`);
}

if (import.meta.main) {
  try {
    const asked = parse(Deno.args);
    if (asked.serve) {
      // The parent ends its servers by closing their input; Ctrl+C reaches the whole group.
      Deno.addSignalListener("SIGINT", () => {});
      await serve();
    } else {
      const interrupt = new AbortController();
      Deno.addSignalListener("SIGINT", () => interrupt.abort());
      await compare(asked, interrupt.signal);
      if (interrupt.signal.aborted) Deno.exit(130);
    }
    Deno.exit(0); // signal listeners keep the process alive
  } catch (error) {
    tell(error instanceof UsageError ? `bench:micro: ${error.message}` : String(error));
    Deno.exit(error instanceof UsageError ? 2 : 1);
  }
}
