/**
 * `deno run -A bench/http_speed.ts [--clients 1,8] [--pairs 3] [--tokens 48] [--each 4]
 * [--waiting 0] [--whole]`: tokens a
 * second of `eyrie serve` with so many clients that ask at once, beside `eyrie generate --batch` at
 * the same batch and requests; processes alternate, each fresh. Also the time to the first token.
 * `--waiting N`: so many clients more than slots; `--whole`: answers that are no streams.
 */
import { parseArgs } from "node:util";
import { median } from "d3-array";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const { values } = parseArgs({
  options: {
    clients: { type: "string", default: "1,8" },
    pairs: { type: "string", default: "3" },
    tokens: { type: "string", default: "48" },
    each: { type: "string", default: "4" },
    waiting: { type: "string", default: "0" },
    whole: { type: "boolean", default: false },
  },
});
const tokens = Number(values.tokens);

interface Run {
  readonly perSecond: number;
  /** Milliseconds to the first token of each request; of the server alone. */
  readonly first: readonly number[];
}

function requestsFor(clients: number): { messages: unknown[]; max_tokens: number }[] {
  const subjects = ["fox", "owl", "ship", "well", "lamp", "tree", "king", "road"];
  return Array.from({ length: clients * Number(values.each) }, (_, i) => ({
    messages: [{ role: "user", content: `Tell me story ${i} about a ${subjects[i % 8]}.` }],
    ...{ max_tokens: tokens, temperature: 0.8, seed: i, ignore_eos: true },
  }));
}

function eyrie(args: readonly string[], stdin: "piped" | "null"): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", MAIN, ...args],
    ...{ stdin, stdout: "piped", stderr: "piped" },
  }).spawn();
}

async function batch(clients: number): Promise<Run> {
  const child = eyrie(["generate", "--batch", "-", "--max-batch", String(clients)], "piped");
  const writer = child.stdin.getWriter();
  const lines = requestsFor(clients).map((request) => JSON.stringify(request)).join("\n");
  await writer.write(new TextEncoder().encode(lines));
  await writer.close();
  const { stderr } = await child.output();
  const told = /, ([\d.]+) tokens\/s/.exec(new TextDecoder().decode(stderr));
  return { perSecond: Number(told?.[1]), first: [] };
}

async function server(clients: number): Promise<Run> {
  const child = eyrie(["serve", "--port", "0", "--max-batch", String(clients)], "null");
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const url = ((await reader.read()).value ?? "").trim();
  const waiting = requestsFor(clients);
  const first: number[] = [];
  let count = 0;
  const began = performance.now();
  await Promise.all(Array.from({ length: clients + Number(values.waiting) }, async () => {
    for (let request = waiting.shift(); request; request = waiting.shift()) {
      const sent = performance.now();
      const response = await fetch(`${url}/v1/chat/completions`, {
        ...{ method: "POST", body: JSON.stringify({ ...request, stream: !values.whole }) },
      });
      let text = "";
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        const before = /"content":"[^"]/.test(text);
        text += piece;
        if (!before && /"content":"[^"]/.test(text)) first.push(performance.now() - sent);
      }
      count += Number(/"completion_tokens":(\d+)/.exec(text)?.[1]);
    }
  }));
  const perSecond = count / (performance.now() - began) * 1000;
  await reader.cancel();
  child.kill("SIGTERM");
  await child.stderr.cancel();
  await child.status;
  return { perSecond, first };
}

for (const clients of values.clients.split(",").map(Number)) {
  const ratios: number[] = [];
  for (let pair = 0; pair < Number(values.pairs); pair++) {
    const plain = await batch(clients);
    const served = await server(clients);
    ratios.push(served.perSecond / plain.perSecond);
    say(
      `${clients} clients: batch ${plain.perSecond.toFixed(1)}, ` +
        `server ${served.perSecond.toFixed(1)} tokens/s, ` +
        `first token ${median(served.first)?.toFixed(0)} ms`,
    );
  }
  say(`${clients} clients: server / batch ${median(ratios)?.toFixed(3)} (median)`);
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
