import assert from "node:assert/strict";
import { runGenerate } from "../../src/cli/generate/generate.ts";
import { parseArguments } from "../../src/cli/options/parse.ts";
import { namedPolicy, speculationOf } from "../../src/cli/open/speculation.ts";
import { open } from "../engine/worker/open.ts";
import { policyPlan, speculationPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { fixed } from "../../src/speculate/policies/static.ts";
import { fakeEngine, type FakeIo, fakeIo } from "./fake.ts";
import { chain, chains, MAX_ROWS, MAX_TOPK } from "../../src/speculate/round_shape.ts";

const CONFIG = JSON.stringify({
  "1": { candidate_steps: [0, 1, 3], update_interval: 2, warmup_batches: 0, down_hysteresis: 0 },
});

function parsed(args: readonly string[]) {
  const invocation = parseArguments(["generate", ...args]);
  assert.ok(invocation.command === "generate");
  return invocation;
}

/** The plan that the flags give with a draft, made from a copy as a worker gets it. */
function planned(args: readonly string[]) {
  const choice = speculationOf(parsed(args).options);
  const copy = structuredClone(choice);
  assert.deepEqual(copy, choice);
  const warnings: string[] = [];
  const onWarning = (line: string) => warnings.push(line);
  return {
    ...speculationPlan(copy, {
      algorithm: "EAGLE3",
      architecture: "LlamaForCausalLM",
      onWarning,
    }),
    warnings,
  };
}

async function withConfig<T>(use: (file: string) => T | Promise<T>): Promise<T> {
  const file = await Deno.makeTempFile({ suffix: ".json" });
  try {
    await Deno.writeTextFile(file, CONFIG);
    return await use(file);
  } finally {
    await Deno.remove(file);
  }
}

Deno.test("flags of speculation are plain data, which says all", () => {
  const plain = planned([]);
  assert.deepEqual([plain.tier, plain.tiers, plain.warnings], [chain(3), [chain(3)], []]);
  assert.equal(plain.speculation.report.policy, "static");
  const tree = planned([
    ...["--speculative-eagle-topk", "4", "--num-steps", "5"],
    ...["--speculative-num-draft-tokens", "16"],
  ]);
  assert.equal(tree.speculation.report.policy, "static");
  assert.deepEqual(tree.tier, { depth: 5, width: 4, rows: 16 });
  assert.deepEqual(planned(["--draft-tree", "total_token=60,depth=7,top_k=10"]).tiers, [
    { depth: 8, width: 10, rows: 60 },
  ]);
  assert.deepEqual(planned(["--draft-tree", "auto"]).tier, { depth: 5, width: 4, rows: 8 });
  assert.throws(() => planned(["--draft-tree", "5:4"]), {
    name: "UsageError",
    message: /^Cannot use "--draft-tree 5:4": cannot read "5:4": a tree is /,
  });
  assert.throws(() => planned(["--draft-tree", "auto", "--num-steps", "3"]), {
    name: "UsageError",
    message: /^Cannot use "--num-steps 3" with "--draft-tree auto": the tree has its own steps$/,
  });
  for (const text of ["topk=0", "topk=17", "tokens=1000", "topk=2,depth=3", "topk=x"]) {
    assert.throws(() => planned(["--draft-tree", text, "--num-steps", "3"]), {
      name: "UsageError",
      message: `Cannot use "--draft-tree ${text}": ` +
        `allowed is topk from 1 to ${MAX_TOPK} and tokens from 1 to ${MAX_ROWS}`,
    });
  }
});

Deno.test("a bad preset is told before anything is opened", async () => {
  const engine = fakeEngine();
  const run = runGenerate(parsed(["hi", "--preset", "no/such"]), {
    open: engine.open,
    io: fakeIo({ stdin: "" }),
  });
  await assert.rejects(run, { name: "UsageError", message: /^Cannot read adaptive config/ });
  assert.deepEqual(engine.opened, []);
});

/** Runs `generate` on the embedded model. Returns the object that --json prints. */
async function generated(args: readonly string[]) {
  const io: FakeIo = fakeIo({ stdin: "" });
  const all = [...args, "--json", "--quiet", "--temperature", "0", "Count from 1 to 9."];
  assert.equal(await runGenerate(parsed(all), { open, io }), 0);
  return JSON.parse(io.out());
}

Deno.test("--num-steps 0 is where a controller begins: it tries drafts", async () => {
  await withConfig(async (file) => {
    const adaptive = ["--speculative-adaptive", "--speculative-adaptive-config", file];
    const { text, speculative } = await generated([...adaptive, "--num-steps", "0"]);
    assert.deepEqual(Object.keys(speculative.adaptive.tier_ms), ["0", "1", "3"]);
    const plain = await generated(["--num-steps", "0"]);
    assert.equal(plain.speculative.draft_tokens, 0);
    assert.equal(text, plain.text);
    const none = await generated([...adaptive, "--num-steps", "0", "--max-tokens", "1"]);
    assert.equal(none.speculative.num_steps, 0);
  });
  const one = await generated(["--num-steps", "2", "--max-tokens", "1"]);
  assert.equal(one.speculative.num_steps, 2, "told although there was no round");
});

Deno.test("what a policy tells of itself stands in --json and --stats, under its name", async () => {
  const { speculation } = policyPlan({
    name: "mine",
    policy: {
      ...fixed(chain(2)),
      report: () => ({ json: { drawn: { odd: 3 } }, rows: [["drawn", "3 odd ones"]] }),
    },
  }, { algorithm: "EAGLE3", maxBatch: 1, onWarning: () => {} });
  const { status } = fakeEngine();
  const engine = { ...fakeEngine(), status: { ...status, speculation: speculation.report } };
  const run = async (flag: string) => {
    const io = fakeIo({ stdin: "" });
    const open = () => Promise.resolve(engine);
    assert.equal(await runGenerate(parsed([flag, "hi"]), { open, io }), 0);
    return flag === "--json" ? io.out() : io.err();
  };
  const { adaptive } = JSON.parse(await run("--json")).speculative;
  assert.deepEqual(adaptive, {
    policy: "mine",
    active_num_steps: 0,
    rounds: 0,
    tier_ms: {},
    switches: [],
    switch_count: 0,
    drawn: { odd: 3 },
    tiers: [0],
    tier_bytes: 1000,
    catch_up: { count: 0, ms: 0 },
  });
  assert.match(await run("--stats"), /^policy {6}mine\n(.*\n)*drawn {7}3 odd ones\n/m);
});

Deno.test("--policy names a policy: --num-steps is where it begins, --seed what it draws by", () => {
  const named = (...args: string[]) => namedPolicy(parsed(args).options);
  assert.equal(named(), undefined);
  const options = { candidate_steps: [1, 3] };
  const text = "ema:candidate_steps=1/3";
  assert.deepEqual(named("--policy", text), { policy: "ema", options });
  assert.deepEqual(named("--policy", text, "--num-steps", "1", "--seed", "7"), {
    policy: "ema",
    options,
    numSteps: 1,
    seed: 7,
  });
  const of = { algorithm: "EAGLE3", architecture: "LlamaForCausalLM", maxBatch: 4 } as const;
  const plan = policyPlan(named("--policy", text, "--num-steps", "1") ?? { policy: "" }, {
    ...of,
    onWarning: () => {},
  });
  assert.deepEqual([plan.tier, plan.tiers], [chain(1), chains([1, 3])]);
});

Deno.test("--policy on the command line: told by --json, and a bad one before anything is opened", async () => {
  const policy = ["--policy", "ema:candidate_steps=1/3,warmup_batches=0,update_interval=2"];
  const { speculative, run } = await generated(policy);
  assert.deepEqual(speculative.adaptive.tiers, [1, 3]);
  assert.equal(run.flags.policy, policy[1]);
  const engine = fakeEngine();
  const bad = runGenerate(parsed(["hi", "--policy", "statik"]), {
    open: engine.open,
    io: fakeIo({ stdin: "" }),
  });
  await assert.rejects(bad, {
    name: "UsageError",
    message: /^Cannot use "--policy statik": no such policy, did you mean static\?/,
  });
  assert.deepEqual(engine.opened, []);
});
