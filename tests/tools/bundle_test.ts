import { equal } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { bundle } from "../../tools/bundle.ts";

const PROMPT = "Count from 1 to 9.";
const ANSWER = "1, 2, 3, 4, 5, 6, 7, 8, 9.\n";

/** Runs something in a folder with caches of its own. */
async function run(program: string, folder: string, args: readonly string[]) {
  const child = new Deno.Command(program, {
    args: [...args],
    cwd: folder,
    env: { DENO_DIR: `${folder}/deno` },
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { code, out: decoder.decode(stdout), err: decoder.decode(stderr) };
}

/** Runs the program in a folder that holds nothing else, without the project's configuration. */
async function runIn(folder: string, ...args: string[]): Promise<string> {
  const flags = ["run", "-A", "--no-config", "--cached-only", "eyrie.js"];
  const { code, out, err } = await run(Deno.execPath(), folder, [...flags, ...args]);
  equal(code, 0, err);
  return out;
}

/** Runs the server there until it has answered. */
async function servesIn(folder: string): Promise<void> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-config", "--cached-only", "eyrie.js", "serve", "--port", "0"],
    cwd: folder,
    env: { DENO_DIR: `${folder}/deno` },
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const url = ((await lines.read()).value ?? "").trim();
  for (const path of ["/", "/metrics", "/openapi.json"]) {
    const response = await fetch(`${url}${path}`);
    equal(response.status, 200, path);
    await response.body?.cancel();
  }
  const body = { messages: [{ role: "user", content: PROMPT }], temperature: 0 };
  const init = { method: "POST", body: JSON.stringify(body) };
  const { choices } = await (await fetch(`${url}/v1/chat/completions`, init)).json();
  equal(`${choices[0].message.content}\n`, ANSWER);
  child.kill("SIGTERM");
  equal((await child.status).code, 0);
  await lines.cancel();
}

Deno.test("the bundle alone in an empty folder runs with its embedded model", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-bundle-test-" });
  try {
    await bundle(`${folder}/eyrie.js`);
    await t.step("--version", async () => {
      equal(await runIn(folder, "--version"), "eyrie 0.1.0\n");
    });
    await t.step("a start reads model and grammars as comments in ASCII", async () => {
      const text = await Deno.readTextFile(`${folder}/eyrie.js`);
      equal(text.search(/[\u0080-\uffff]/), -1);
      const longest = text.split("\n").filter((line) => line.length > 500_000);
      equal(longest.map((line) => line.slice(0, 2)).join(" "), "// // // //");
    });
    await t.step("a start leaves what V8 compiled for the next one", () => {
      using caches = new DatabaseSync(`${folder}/deno/v8_code_cache_v2`);
      const query = caches.prepare("select specifier from codecache where specifier like ?");
      equal(query.all("%/eyrie.js").length, 1);
    });
    await t.step("inspect reads the model", async () => {
      const report = JSON.parse(await runIn(folder, "inspect", "--json"));
      equal(report.target.parameters, 6_426_880);
    });
    await t.step("generate drafts with the EAGLE-1 head, and holds to a grammar", async () => {
      const args = ["--temperature", "0", "--json", "--speculative-algorithm", "EAGLE"];
      const grammar = ["--regex", "12 \\+ 34 = [0-9]{2}", "What is 12 + 34?"];
      const out = await runIn(folder, "generate", ...args, ...grammar);
      const { text, speculative } = JSON.parse(out);
      equal(text, "12 + 34 = 46");
      equal(speculative.algorithm, "EAGLE");
    });
    await t.step(
      "serve answers with the EAGLE-3 head, with its page and its metrics",
      () => servesIn(folder),
    );
    await t.step("deno install takes it from a URL; then it needs no network", async () => {
      const text = await Deno.readTextFile(`${folder}/eyrie.js`);
      const headers = { "content-type": "text/javascript" };
      const server = Deno.serve({ port: 0, onListen() {} }, () => new Response(text, { headers }));
      const url = `http://127.0.0.1:${server.addr.port}/eyrie.js`;
      const flags = ["--global", "--allow-all", "--no-config", "--root", `${folder}/root`];
      const install = await run(Deno.execPath(), folder, [
        "install",
        ...flags,
        "--name",
        "eyrie",
        url,
      ]);
      await server.shutdown();
      equal(install.code, 0, install.err);
      const installed = await run(`${folder}/root/bin/eyrie`, folder, [
        "generate",
        "-n",
        "64",
        "--temperature",
        "0",
        PROMPT,
      ]);
      equal(installed.out, ANSWER, installed.err);
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
