import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { runReport } from "../../src/cli/generate/repeat.ts";
import { shownName } from "../../src/cli/open/reference.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { fakeEngine, fakeIo } from "./fake.ts";

/** Runs the program with a prompt or lines on standard input. Returns what it printed, line by line. */
async function eyrie(args: string[], stdin = ""): Promise<Record<string, unknown>[]> {
  const io = fakeIo({ stdin });
  assert.equal(await main([...args, "--quiet"], io), 0, io.err());
  return io.out().trim().split("\n").map((line) => JSON.parse(line));
}

interface Told {
  readonly text?: unknown;
  readonly request?: unknown;
  readonly run?: { readonly flags: Readonly<Record<string, unknown>> };
}

/** Repeats an answer with nothing but the reported values. */
async function repeated({ request, run }: Told): Promise<Told> {
  const flags = Object.entries(run?.flags ?? assert.fail())
    .flatMap(([name, value]) => value === true ? [`--${name}`] : [`--${name}`, String(value)]);
  const [line] = await eyrie(
    ["generate", "--batch", "-", "--max-batch", "1", ...flags],
    JSON.stringify(request),
  );
  return line ?? assert.fail();
}

Deno.test("a run with a drawn seed is repeated from its own --json, and from its batch line", async () => {
  const model = new URL("../../models/fledgling/target", import.meta.url).pathname;
  const args = "generate --json -n 16 --temperature 1.5 --top-k 50 --system Hm --draft none".split(
    " ",
  );
  const [first] = await eyrie([...args, "--quantize", "q8", "--model", model, "Tell me a story."]);
  const told: Told = first ?? assert.fail();
  const { text, request, run } = await repeated(told);
  assert.deepEqual({ text, request, run }, {
    text: told.text,
    request: told.request,
    run: told.run,
  });
});

Deno.test("a run tells the commits of models from the cache, and whole paths of folders", async () => {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const commit = "0123456789abcdef0123456789abcdef01234567";
  const snapshot = `${root}/models--org--some--name/snapshots/${commit}`;
  await Deno.mkdir(snapshot, { recursive: true });
  const head = `${root}/a/../models--org--some--name`;
  const invocation = parseArguments(
    ["generate", "--model", "org/some--name", "--draft", head, "--num-steps", "2", "--raw", "x"],
  );
  assert.ok(invocation.command === "generate");
  const engine = fakeEngine();
  Object.assign(engine.info, { name: snapshot, draftName: `${snapshot}/../..` });
  const { model, draft, flags } = runReport(engine, invocation.options);
  await Deno.remove(root, { recursive: true });
  const folder = `${root}/models--org--some--name`;
  assert.deepEqual([model, draft], [`org/some--name@${commit}`, folder]);
  assert.deepEqual(flags, {
    "model": `org/some--name@${commit}`,
    "draft": folder,
    "num-steps": 2,
    "raw": true,
  });
  assert.equal(shownName(snapshot), "org/some--name@0123456");
});
