// What a drafter costs the host: microseconds for a proposal, and for each token that it takes in.
//
//   deno run -A lab/drafters_host.ts
//
// The drafter reads a text of a given length in which some parts repeat and others are new, after 20 finished
// answers of 2,000 tokens. Figures are medians of 400 rounds.
import process from "node:process";
import { markdownTable } from "markdown-table";
import { HOST_ALGORITHMS, HOST_DRAFT_TOKENS, hostDrafter } from "../src/draft/algorithms.ts";
import { hash32 } from "../src/speculate/noise.ts";

const ROOM = { count: HOST_DRAFT_TOKENS - 1, depth: HOST_DRAFT_TOKENS - 1, device: 3 };

let drawn = 0;
/** Some tokens are frequent, most are rare. */
const token = () => Math.floor(Math.exp(hash32(1, drawn++, 0) / 2 ** 32 * 10));
const textOf = (length: number) => Array.from({ length }, token);

function timed(work: () => void): number {
  const began = performance.now();
  work();
  return 1000 * (performance.now() - began);
}

function measure(name: typeof HOST_ALGORITHMS[number], context: number): [number, number] {
  const drafter = hostDrafter(name);
  const idle = (tokens: number) => {
    for (let i = 0; i <= tokens / 512; i++) drafter.meanwhile?.();
  };
  for (let n = 0; n < 20; n++) {
    drafter.open([0]).close?.([0, ...textOf(2000)]);
    idle(2000);
  }
  const page = textOf(context);
  const request = drafter.open(page);
  const takingIn = timed(() => idle(context)) / context;
  const ids = [...page];
  const rounds = Array.from({ length: 400 }, (_, round) => {
    const took = timed(() => request.propose(ids, ROOM));
    const from = hash32(2, round >> 3, 0) % (context - 64);
    for (let i = 0; i < 1 + round % 6; i++) {
      ids.push(round % 24 < 16 ? page[from + (round & 7) * 6 + i] as number : token());
    }
    return took;
  });
  return [rounds.toSorted((a, b) => a - b)[200] as number, takingIn];
}

const rows = HOST_ALGORITHMS.flatMap((name) =>
  [1000, 8000, 32_000].map((context) => {
    const [proposal, takingIn] = measure(name, context);
    return [name, String(context), proposal.toFixed(0), takingIn.toFixed(2)];
  })
);
const table = markdownTable([
  ["drafter", "context", "us a proposal", "us a token of the prompt"],
  ...rows,
], {
  align: ["l", "r", "r", "r"],
});
process.stdout.write(`${table}\n`);
