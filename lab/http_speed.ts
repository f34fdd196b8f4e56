/**
 * `deno run -A lab/http_speed.ts [--clients 1,8,32] [--pairs 3] [--tokens 128] [--each 3]
 * [--waiting 0] [--whole]`: tokens a second of `eyrie serve` with that many concurrent clients,
 * beside `eyrie generate --batch` with the same batch size and requests. Both run in turn, each in a
 * fresh process, and alternate who is first. It also prints the time to the first token, and on Linux
 * the CPU time per token of the thread that speaks HTTP. `--each N`: requests of each client, one
 * after the other; `--waiting N`: N more clients than slots; `--whole`: answers are not streamed.
 */
import { parseArgs } from "node:util";
import { max, median, min, quantile } from "d3-array";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const { values } = parseArgs({
  options: {
    clients: { type: "string", default: "1,8,32" },
    pairs: { type: "string", default: "3" },
    tokens: { type: "string", default: "128" },
    each: { type: "string", default: "3" },
    waiting: { type: "string", default: "0" },
    whole: { type: "boolean", default: false },
  },
});
const tokens = Number(values.tokens);

interface Run {
  readonly perSecond: number;
  /** Milliseconds to the first token of each request; only measured for the server. */
  readonly first: readonly number[];
  /** CPU microseconds of the server's main thread per token. */
  readonly threadUs: number;
}

function requestsFor(clients: number): { messages: unknown[]; max_tokens: number }[] {
  const subjects = ["fox", "owl", "ship", "well", "lamp", "tree", "king", "road"];
  return Array.from({ length: clients * Number(values.each) }, (_, i) => ({
    messages: [{ role: "user", content: `Tell me story ${i} about a ${subjects[i % 8]}.` }],
    max_tokens: tokens,
    temperature: 0.8,
    seed: i,
    ignore_eos: true,
  }));
}

function eyrie(args: readonly string[], stdin: "piped" | "null"): Deno.ChildProcess {
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", MAIN, ...args],
    stdin,
    stdout: "piped",
    stderr: "piped",
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
  return { perSecond: Number(told?.[1]), first: [], threadUs: NaN };
}

async function server(clients: number): Promise<Run> {
  const child = eyrie(["serve", "--port", "0", "--max-batch", String(clients)], "null");
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const url = ((await reader.read()).value ?? "").trim();
  const waiting = requestsFor(clients);
  const first: number[] = [];
  let count = 0;
  const busyBefore = mainThreadMs(child.pid);
  const began = performance.now();
  await Promise.all(Array.from({ length: clients + Number(values.waiting) }, async () => {
    for (let request = waiting.shift(); request; request = waiting.shift()) {
      const sent = performance.now();
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        body: JSON.stringify({ ...request, stream: !values.whole }),
      });
      let [told, end] = [false, ""];
      for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
        if (!told && (told = /"content":"[^"]/.test(piece))) first.push(performance.now() - sent);
        end = (end + piece).slice(-2000);
      }
      count += Number(/"completion_tokens":(\d+)/.exec(end)?.[1]);
    }
  }));
  const perSecond = count / (performance.now() - began) * 1000;
  const threadUs = (mainThreadMs(child.pid) - busyBefore) * 1000 / count;
  await reader.cancel();
  child.kill("SIGTERM");
  await child.stderr.cancel();
  await child.status;
  return { perSecond, first, threadUs };
}

/** CPU time of a process's main thread until now. The kernel counts it in steps of 10 ms. */
function mainThreadMs(pid: number): number {
  if (Deno.build.os !== "linux") return NaN;
  const [user, system] = Deno.readTextFileSync(`/proc/${pid}/task/${pid}/stat`)
    .replace(/^.*\) /, "").split(" ").slice(11, 13).map(Number);
  return ((user ?? 0) + (system ?? 0)) * 10;
}

for (const clients of values.clients.split(",").map(Number)) {
  const ratios: number[] = [];
  const first: number[] = [];
  for (let pair = 0; pair < Number(values.pairs); pair++) {
    const early = pair % 2 === 0 ? await batch(clients) : undefined;
    const served = await server(clients);
    const plain = early ?? await batch(clients);
    ratios.push(served.perSecond / plain.perSecond);
    first.push(...served.first);
    say(
      `${clients} clients: batch ${plain.perSecond.toFixed(1)}, ` +
        `server ${served.perSecond.toFixed(1)} tokens/s, ` +
        `its HTTP thread ${served.threadUs.toFixed(0)} us a token`,
    );
  }
  const [low, middle, high] = [min(ratios), median(ratios), max(ratios)].map((one) => (
    one?.toFixed(2)
  ));
  say(
    `${clients} clients: server / batch ${middle} (${low} to ${high}), first token ` +
      `${median(first)?.toFixed(0)} ms, of 95 % within ${quantile(first, 0.95)?.toFixed(0)} ms`,
  );
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
