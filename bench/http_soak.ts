/**
 * `deno run -A bench/http_soak.ts [--seconds 600] [--clients 64] [--batch 4]`: clients that mix
 * routes, leave early and send garbage. At the end: every answer was that of the same request alone,
 * no page is held, and how the server's memory went. Exit code 1 where something is wrong.
 */
import { parseArgs } from "node:util";

const MAIN = new URL("../main.ts", import.meta.url).pathname;
const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "600" },
    clients: { type: "string", default: "64" },
    batch: { type: "string", default: "4" },
  },
});

interface Asked {
  readonly path: string;
  readonly body: Record<string, unknown>;
  /** The text in an answer that is no stream. */
  // deno-lint-ignore no-explicit-any -- what a server answers
  readonly text: (answer: any) => string;
}

const PROMPTS = ["Count from 3 to 20.", "Spell the word amber.", "Hello!", "Tell me a story."];
const SAMPLED = [{ temperature: 0 }, { temperature: 0.9, seed: 7 }, { temperature: 1.3, seed: 5 }];

const REQUESTS: readonly Asked[] = PROMPTS.flatMap((content) =>
  SAMPLED.flatMap((sampled): Asked[] => {
    const messages = [{ role: "user", content }];
    const tool = { type: "function", function: { name: "f" } };
    const parameters = { type: "object", properties: { n: { type: "integer", maximum: 99 } } };
    const schema = { ...parameters, additionalProperties: false };
    return [
      {
        path: "/v1/chat/completions",
        body: { messages, ...sampled, max_tokens: 24 },
        text: (answer) => answer.choices[0].message.content,
      },
      {
        path: "/v1/chat/completions",
        body: {
          ...{ messages, ...sampled, max_tokens: 30 },
          response_format: { type: "json_schema", json_schema: { schema } },
        },
        text: (answer) => answer.choices[0].message.content,
      },
      {
        path: "/v1/chat/completions",
        body: { messages, ...sampled, max_tokens: 30, tools: [tool], tool_choice: "required" },
        text: (answer) => JSON.stringify(answer.choices[0].message.tool_calls?.[0]?.function),
      },
      {
        path: "/v1/completions",
        body: { prompt: content, ...sampled, max_tokens: 20 },
        text: (answer) => answer.choices[0].text,
      },
      {
        path: "/v1/messages",
        body: { messages, ...sampled, max_tokens: 16 },
        // deno-lint-ignore no-explicit-any -- a block of a message
        text: (answer) => answer.content.map((block: any) => block.text).join(""),
      },
      {
        path: "/v1/responses",
        body: { input: content, ...sampled, max_output_tokens: 16 },
        text: (answer) => JSON.stringify(answer.output.map((item: unknown) => withoutIds(item))),
      },
      {
        path: "/api/generate",
        body: {
          model: "m",
          prompt: content,
          options: { ...sampled, num_predict: 12 },
          stream: false,
        },
        text: (answer) => answer.response,
      },
    ];
  })
);

const GARBAGE: readonly BodyInit[] = [
  ...["{", "null", '{"messages": 7}', "[".repeat(20_000), `{"messages":[{"role":"user"}]}`],
  ...['{"messages":[{"role":"user","content":"x"}],"seed":-1}', "\u0000", "x".repeat(100_000)],
  new Uint8Array([0xff, 0xfe, 0x00]),
];

function withoutIds(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, each) => key === "id" ? undefined : each));
}

const child = new Deno.Command(Deno.execPath(), {
  args: [
    ...["run", "-A", MAIN, "serve", "--port", "0", "--served-model-name", "m"],
    ...["--max-batch", values.batch, "--max-queue", "200"],
  ],
  ...{ stdout: "piped", stderr: "inherit" },
}).spawn();
const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
const url = ((await reader.read()).value ?? "").trim();

function ask(
  { path, body }: Pick<Asked, "path" | "body">,
  signal?: AbortSignal,
): Promise<Response> {
  const init = { method: "POST", body: JSON.stringify(body), ...signal && { signal } };
  return fetch(`${url}${path}`, init);
}

/** Of the server's process, MB. */
function memory(): number {
  const status = Deno.readTextFileSync(`/proc/${child.pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

const expected: string[] = [];
for (const request of REQUESTS) expected.push(request.text(await (await ask(request)).json()));

const counts = { answers: 0, wrong: 0, left: 0, refused: 0, unexpected: 0 };
const memories: number[] = [];
const until = performance.now() + Number(values.seconds) * 1000;
const sampler = setInterval(() => memories.push(memory()), 2000);

async function one(): Promise<void> {
  const choice = Math.random();
  const at = Math.floor(Math.random() * REQUESTS.length);
  const request = REQUESTS[at] as Asked;
  if (choice < 0.15) {
    const body = GARBAGE[Math.floor(Math.random() * GARBAGE.length)] as BodyInit;
    const { status, body: answer } = await fetch(`${url}${request.path}`, { method: "POST", body });
    await answer?.cancel();
    if (status === 400) counts.refused++;
    else counts.unexpected++;
  } else if (choice < 0.4) {
    const leaving = new AbortController();
    setTimeout(() => leaving.abort(), Math.random() * 400);
    const stream = Math.random() < 0.5;
    try {
      const body = { ...request.body, stream };
      await (await ask({ path: request.path, body }, leaving.signal)).text();
    } catch {
      counts.left++;
    }
  } else {
    const response = await ask(request);
    if (response.status === 429) return void await response.body?.cancel();
    const text = response.ok ? request.text(await response.json()) : await response.text();
    counts.answers++;
    if (text !== expected[at]) {
      counts.wrong++;
      say(`${request.path} ${JSON.stringify(request.body)}: ${text} is not ${expected[at]}`);
    }
  }
}

await Promise.all(Array.from({ length: Number(values.clients) }, async () => {
  while (performance.now() < until) await one();
}));
clearInterval(sampler);
await new Promise((resolve) => setTimeout(resolve, 1000));
const [state] = (await (await fetch(`${url}/server_info`)).json()).internal_states;
const { free, total } = state.kv_pages;
child.kill("SIGTERM");
await reader.cancel();
const { code } = await child.status;
say(JSON.stringify(counts));
say(`pages free ${free} of ${total}, running ${state.num_running_reqs}, exit code ${code}`);
const tenths = Array.from({ length: 10 }, (_, i) => memories[Math.floor(i * memories.length / 10)]);
say(`memory MB, ten times of the run: ${tenths.map((each) => each?.toFixed(0)).join(" ")}`);
const wrong = counts.wrong + counts.unexpected > 0 || free !== total || code !== 0;
Deno.exit(wrong ? 1 : 0);

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
