import { deepEqual, equal, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import denoJson from "../../deno.json" with { type: "json" };
import { serve } from "./server.ts";

const ROOT = new URL("../../", import.meta.url);
const LOCK = JSON.parse(await Deno.readTextFile(new URL("tests/deno.lock", ROOT)));
const PAGE = await Deno.readTextFile(new URL("docs/server.md", ROOT));

/** A program of the page, and the output that the page gives for it. */
interface Transcript {
  readonly language: string;
  readonly program: string;
  readonly came: string;
}

/** Only whole programs, not fragments that the page shows. */
const transcripts: readonly Transcript[] = [
  ...section("Clients").matchAll(/^```(ts|sh)\n([^]*?)^```\n+```(?:text|json)\n([^]*?)^```/gm),
]
  .map(([, language = "", program = "", came = ""]) => ({ language, program, came }))
  .filter(({ program }) => /^curl |from "/.test(program));

function section(heading: string): string {
  const [, text = ""] = PAGE.split(`\n## ${heading}\n`);
  return text.split("\n## ")[0] ?? "";
}

/** The address at which the page's server listens. */
const ADDRESS = "127.0.0.1:8000";

async function hasCurl(): Promise<boolean> {
  const version = new Deno.Command("curl", { args: ["--version"], stdout: "null" });
  return await version.output().then(({ success }) => success, () => false);
}

/** The output of a program that talks to the server at `address`. */
async function printed(
  { language, program }: Transcript,
  address: string,
): Promise<string> {
  const text = program.replaceAll(ADDRESS, address);
  const [file, ...args] = language === "sh"
    ? ["bash", "-c", text]
    : [Deno.execPath(), "run", "-A", "--quiet", "--lock=tests/deno.lock", "--ext=ts", "-"];
  const child = new Deno.Command(file ?? "", {
    args,
    cwd: fileURLToPath(ROOT),
    env: { NO_COLOR: "1" },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  if (language === "ts") await writer.write(new TextEncoder().encode(withVersions(text)));
  await writer.close();
  const { code, stdout } = await child.output();
  equal(code, 0);
  return new TextDecoder().decode(stdout);
}

/** The program with the names of packages replaced by the versions in the tests' lockfile. */
function withVersions(program: string): string {
  return program.replaceAll(/ from "([^".:]+)"/g, (all, name: string) => {
    const locked = Object.keys(LOCK.specifiers).find((each) => each.startsWith(`npm:${name}@`));
    return locked ? ` from "${locked}"` : all;
  });
}

/** Answers without the values that differ between runs: ids and times. */
function lasting(text: string): unknown[] {
  const one = (json: string): unknown =>
    JSON.parse(json, (key, value: unknown) => {
      return /^(id|created)$|_(ms|at|per_second|duration)$/.test(key) ? typeof value : value;
    });
  // The text is one object over several lines, or one object a line.
  return text.startsWith("{\n") ? [one(text)] : text.trim().split("\n").map(one);
}

Deno.test("the page has a transcript of each client", () => {
  const clients = ["openai", "@ai-sdk/openai-compatible", "@anthropic-ai/sdk", "ollama"];
  for (const client of clients) {
    const found = transcripts.filter(({ program }) => program.includes(`from "${client}"`));
    equal(found.length, 1, client);
  }
  ok(transcripts.some(({ program }) => program.startsWith("curl ")), "curl");
});

Deno.test("what the page says came of a client comes of it", async (t) => {
  await using server = await serve({ version: denoJson.version });
  const address = new URL(server.url).host;
  const curl = await hasCurl();
  for (const transcript of transcripts) {
    const { language, program, came } = transcript;
    const [name = ""] = /(?<=from ").*?(?=")|http\S+/.exec(program) ?? [];
    const ignore = language === "sh" && !curl;
    await t.step({
      name,
      ignore,
      async fn() {
        const text = await printed(transcript, address);
        if (language === "sh") deepEqual(lasting(text), lasting(came));
        else equal(text, came);
      },
    });
  }
});
