/**
 * `deno run -A lab/http_soak.ts [--seconds 600] [--clients 64] [--batch 4]`: clients that mix
 * routes, ask for whole and streamed answers, leave early and send garbage. At the end it checks that
 * every answer equals that of the same request alone and that no KV page is still held, and prints the
 * server's memory over time. The exit code is 1 if a check fails, or if memory in the last quarter is
 * more than 15 % above that in the second.
 */
import { parseArgs } from "node:util";
import { median } from "d3-array";

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
  /** The text of an answer that is not streamed. */
  readonly text: (answer: Json) => string;
  /** The text that one event of a stream adds. */
  readonly piece: (event: Json) => string | undefined;
}

// deno-lint-ignore no-explicit-any -- what a server answers
type Json = any;

const PROMPTS = ["Count from 3 to 20.", "Spell the word amber.", "Hello!", "Tell me a story."];
const SAMPLED = [{ temperature: 0 }, { temperature: 0.9, seed: 7 }, { temperature: 1.3, seed: 5 }];

const REQUESTS: readonly Asked[] = PROMPTS.flatMap((content) =>
  SAMPLED.flatMap((sampled): Asked[] => {
    const messages = [{ role: "user", content }];
    const tool = { type: "function", function: { name: "f" } };
    const parameters = { type: "object", properties: { n: { type: "integer", maximum: 99 } } };
    const schema = { ...parameters, additionalProperties: false };
    const chat = {
      path: "/v1/chat/completions",
      text: (answer: Json) => answer.choices[0].message.content,
      piece: (event: Json) => event.choices[0]?.delta.content,
    };
    return [
      { ...chat, body: { messages, ...sampled, max_tokens: 24 } },
      {
        ...chat,
        body: {
          messages,
          ...sampled,
          max_tokens: 30,
          response_format: { type: "json_schema", json_schema: { schema } },
        },
      },
      {
        path: "/v1/chat/completions",
        body: { messages, ...sampled, max_tokens: 30, tools: [tool], tool_choice: "required" },
        text: (answer) => answer.choices[0].message.tool_calls?.map(called).join(""),
        piece: (event) => event.choices[0]?.delta.tool_calls?.map(called).join(""),
      },
      {
        path: "/v1/completions",
        body: { prompt: content, ...sampled, max_tokens: 20 },
        text: (answer) => answer.choices[0].text,
        piece: (event) => event.choices[0]?.text,
      },
      {
        path: "/v1/messages",
        body: { messages, ...sampled, max_tokens: 16 },
        text: (answer) => answer.content.map((block: Json) => block.text).join(""),
        piece: (event) => event.delta?.text,
      },
      {
        path: "/v1/responses",
        body: { input: content, ...sampled, max_output_tokens: 16 },
        text: (answer) => answer.output[0]?.content.map((part: Json) => part.text).join("") ?? "",
        piece: (event) => event.type === "response.output_text.delta" ? event.delta : undefined,
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
        piece: (event) => event.response,
      },
    ];
  })
);

/** The text of a tool call, or of a delta of one. */
function called({ function: { name, arguments: given } }: Json): string {
  return `${name === undefined ? "" : `${name} `}${given ?? ""}`;
}

const GARBAGE: readonly BodyInit[] = [
  ...["{", "null", '{"messages": 7}', "[".repeat(20_000), `{"messages":[{"role":"user"}]}`],
  ...['{"messages":[{"role":"user","content":"x"}],"seed":-1}', "\u0000", "x".repeat(100_000)],
  new Uint8Array([0xff, 0xfe, 0x00]),
];

/** Texts that are sent over a raw connection, which is then closed. */
const TYPED: readonly string[] = [
  ...[
    "",
    "\r\n\r\n",
    "GET / HTTP/9.9\r\n\r\n",
    "\u0016\u0003\u0001",
    "GET /health HTTP/1.1\r\nHost: ",
  ],
  `GET /health HTTP/1.1\r\nHost: a\r\n${"x: y\r\n".repeat(5000)}`,
  'POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n{"messa',
  "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(30),
];

const child = new Deno.Command(Deno.execPath(), {
  args: [
    ...["run", "-A", MAIN, "serve", "--port", "0", "--served-model-name", "m"],
    ...["--max-batch", values.batch, "--max-queue", "200", "--log-format", "none"],
  ],
  stdout: "piped",
  stderr: "inherit",
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

/** Resident memory of the server's process, MB. */
function memory(): number {
  const status = Deno.readTextFileSync(`/proc/${child.pid}/status`);
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

const expected: string[] = [];
for (const request of REQUESTS) expected.push(request.text(await (await ask(request)).json()));

const counts = { answers: 0, streams: 0, wrong: 0, left: 0, typed: 0, refused: 0, unexpected: 0 };
const memories: number[] = [];
const until = performance.now() + Number(values.seconds) * 1000;
const sampler = setInterval(() => memories.push(memory()), 2000);

function anyOf<T>(all: readonly T[]): T {
  return all[Math.floor(Math.random() * all.length)] as T;
}

async function one(): Promise<void> {
  const choice = Math.random();
  if (choice < 0.1) await refused();
  else if (choice < 0.15) await typed();
  else if (choice < 0.35) await left();
  else await answered(Math.floor(Math.random() * REQUESTS.length), choice < 0.65);
}

async function refused(): Promise<void> {
  const { path } = anyOf(REQUESTS);
  const { status, body } = await fetch(`${url}${path}`, { method: "POST", body: anyOf(GARBAGE) });
  await body?.cancel();
  if (status === 400) counts.refused++;
  else counts.unexpected++;
}

async function typed(): Promise<void> {
  const { hostname, port } = new URL(url);
  using connection = await Deno.connect({ hostname, port: Number(port) });
  await connection.write(new TextEncoder().encode(anyOf(TYPED))).catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
  counts.typed++;
}

async function left(): Promise<void> {
  const request = anyOf(REQUESTS);
  const leaving = new AbortController();
  setTimeout(() => leaving.abort(), Math.random() * 400);
  const body = { ...request.body, stream: Math.random() < 0.5 };
  try {
    await (await ask({ path: request.path, body }, leaving.signal)).text();
  } catch {
    counts.left++;
  }
}

async function answered(at: number, stream: boolean): Promise<void> {
  const { path, body, text, piece } = REQUESTS[at] as Asked;
  const response = await ask({ path, body: { ...body, stream } });
  const got = await response.text();
  counts[stream ? "streams" : "answers"]++;
  const found = !response.ok ? got : stream ? streamText(got, piece) : text(JSON.parse(got));
  if (found === expected[at]) return;
  counts.wrong++;
  say(`${path} ${JSON.stringify(body)}: ${found} is not ${expected[at]}`);
}

/** The text of a stream of server-sent events, or of lines of JSON. */
function streamText(text: string, piece: Asked["piece"]): string {
  const lines = text.split("\n").map((line) => line.replace(/^data: /, ""));
  const events = lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  return events.map((event) => piece(event) ?? "").join("");
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
const quarter = (i: number) =>
  median(memories.slice(i * memories.length / 4, (i + 1) * memories.length / 4)) ?? NaN;
const growth = quarter(3) / quarter(1);
say(`memory in the last quarter over the second: ${growth.toFixed(2)}`);
const held = free !== total || state.num_running_reqs !== 0;
const wrong = counts.wrong + counts.unexpected > 0 || held || code !== 0 || !(growth < 1.15);
Deno.exit(wrong ? 1 : 0);

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}
