import assert from "node:assert/strict";
import { main } from "../../main.ts";
import { parseAdaptiveConfig } from "../../src/speculate/adaptive_config.ts";
import { fakeIo } from "./fake.ts";

async function run(line: string) {
  const io = fakeIo();
  const args = line.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
  const code = await main(["serve-command", ...args], io);
  return { code, out: io.out(), err: io.err() };
}

/** The words that a shell makes of the printed command, without the file that it writes first. */
function words(out: string): string[] {
  const command = out.replace(/^cat > [^]*?\nEND\n/, "").replaceAll("\\\n", " ");
  return command.match(/(?:'[^']*'|\\'|[^\s'])+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
}

function flags(out: string): Record<string, string> {
  const found: Record<string, string> = {};
  let last = "";
  for (const word of words(out)) {
    if (word.startsWith("--")) found[last = word] = "";
    else if (last !== "") found[last] = word;
  }
  return found;
}

const speculative = (out: string) => JSON.parse(flags(out)["--speculative-config"] ?? "null");
const heredoc = (out: string) =>
  JSON.parse(/^cat > \S+ <<'END'\n([^]*?)\nEND\n/.exec(out)?.[1] ?? "");

const HEAD = "-m Qwen/Qwen3-8B --draft auto";
const DRAFT = {
  "--speculative-algorithm": "EAGLE3",
  "--speculative-draft-model-path": "AngelSlim/Qwen3-8B_eagle3",
};
const MODEL = { "--model-path": "Qwen/Qwen3-8B" };

Deno.test("serve-command, SGLang: a chain, a tree, none", async () => {
  const cases: [line: string, expected: Record<string, string>][] = [
    ["--num-steps 5", {
      ...MODEL,
      ...DRAFT,
      "--speculative-num-steps": "5",
      "--speculative-eagle-topk": "1",
      "--speculative-num-draft-tokens": "6",
    }],
    ["--draft-tree 5:4:8", {
      ...MODEL,
      ...DRAFT,
      "--speculative-num-steps": "5",
      "--speculative-eagle-topk": "4",
      "--speculative-num-draft-tokens": "8",
    }],
    ["--draft-tree auto", { ...MODEL, ...DRAFT }],
    ["--num-steps 0", MODEL],
    ["--policy off", MODEL],
    ["--policy static:num_steps=2", {
      ...MODEL,
      ...DRAFT,
      "--speculative-num-steps": "2",
      "--speculative-eagle-topk": "1",
      "--speculative-num-draft-tokens": "3",
    }],
  ];
  for (const [line, expected] of cases) {
    const { code, out, err } = await run(`sglang ${HEAD} ${line}`);
    assert.deepEqual([code, err], [0, ""], line);
    assert.equal(words(out).slice(0, 3).join(" "), "python3 -m sglang.launch_server");
    assert.deepEqual(flags(out), expected, line);
  }
});

Deno.test("serve-command, SGLang: presets and adaptive policies are written as its config", async () => {
  const preset = JSON.parse(await Deno.readTextFile("presets/conservative.json"));
  for (const line of ["--preset conservative", "--speculative-adaptive", "--policy ema"]) {
    const { out, err } = await run(`sglang ${HEAD} ${line}`);
    assert.equal(err, "", line);
    assert.deepEqual(heredoc(out), preset, line);
    const found = flags(out);
    assert.equal(found["--speculative-adaptive"], "", line);
    assert.equal(found["--speculative-adaptive-config"], "eyrie-adaptive.json");
    assert.equal(found["--speculative-num-steps"], "3");
  }
  const main = await run(`sglang ${HEAD} --policy 'ema:generation=main,ema_alpha=0.1'`);
  const config = heredoc(main.out);
  assert.deepEqual([config["64"].candidate_steps, config.ema_alpha], [[0], 0.1]);
  parseAdaptiveConfig(config);
  const cost = await run(`sglang ${HEAD} --policy 'throughput-aware:steps=1/4,window=9'`);
  assert.deepEqual(heredoc(cost.out), {
    "1": { candidate_steps: [1, 4] },
    strategy: "throughput_aware",
    window_size: 9,
    update_interval: 10,
  });
  const begin = await run(`sglang ${HEAD} --preset aggressive --num-steps 7`);
  assert.equal(flags(begin.out)["--speculative-num-steps"], "7");
});

Deno.test("serve-command --emit-config writes the file that the command names", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const path = `${folder}/adaptive.json`;
    const line = `sglang ${HEAD} --preset aggressive --emit-config ${path}`;
    const { code, out } = await run(line);
    assert.equal(code, 0);
    assert.ok(out.startsWith("python3 -m"), out);
    assert.equal(flags(out)["--speculative-adaptive-config"], path);
    const written = JSON.parse(await Deno.readTextFile(path));
    assert.deepEqual(written, JSON.parse(await Deno.readTextFile("presets/aggressive.json")));
    const tree = `${folder}/trees.json`;
    await Deno.writeTextFile(
      tree,
      '{"1": {"candidate_steps": [1], "candidate_trees": [[4, 2, 8]]}}',
    );
    const trees = await run(`sglang ${HEAD} --preset ${tree}`);
    assert.deepEqual(heredoc(trees.out), { "1": { candidate_steps: [1, 4] } });
    assert.match(trees.err, /^warning: candidate_trees have no equivalent in SGLang/);
    const none = await run(`vllm ${HEAD} --preset aggressive --emit-config ${folder}/x`);
    assert.equal(none.code, 2);
    assert.match(none.err, /"--emit-config .*": this command has no config file/);
    const nowhere = await run(`sglang ${HEAD} --preset aggressive --emit-config /no/x`);
    assert.deepEqual([nowhere.code, nowhere.out], [2, ""]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("serve-command, the printed text is what a shell takes: it writes the config and quotes", async () => {
  const { out } = await run(
    `sglang ${HEAD} --preset conservative --served-model-name 'a b'`,
  );
  const folder = await Deno.makeTempDir();
  try {
    const script = out.replace("python3 -m sglang.launch_server", "printf '%s\\n'");
    const { stdout, code } = await new Deno.Command("sh", {
      args: ["-c", script],
      cwd: folder,
    }).output();
    assert.equal(code, 0);
    const lines = new TextDecoder().decode(stdout).trimEnd().split("\n");
    assert.equal(lines[lines.indexOf("--served-model-name") + 1], "a b");
    const written = JSON.parse(await Deno.readTextFile(`${folder}/eyrie-adaptive.json`));
    assert.deepEqual(Object.keys(written), ["1", "8", "32"]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("serve-command, vLLM: methods, and steps by batch size", async () => {
  const eagle = { method: "eagle3", model: "AngelSlim/Qwen3-8B_eagle3" };
  const cases: [line: string, expected: object, told: RegExp][] = [
    [`${HEAD} --num-steps 5`, { ...eagle, num_speculative_tokens: 5 }, /^$/],
    [
      `${HEAD} --preset conservative`,
      {
        ...eagle,
        num_speculative_tokens: 3,
        num_speculative_tokens_per_batch_size: [[1, 7, 3], [8, 31, 3], [32, 1024, 1]],
      },
      /^warning: vLLM does not adapt to what is accepted: .* 3 from 1, 3 from 8, 1 from 32\n$/,
    ],
    [`${HEAD} --draft-tree 5:4:8`, { ...eagle, num_speculative_tokens: 5 }, /trees have no equi/],
    [
      "-m a/b --draft c/d@dev --drafter EAGLE --num-steps 2",
      { method: "eagle", model: "c/d", revision: "dev", num_speculative_tokens: 2 },
      /^$/,
    ],
    [
      "-m a/b --draft c/d --drafter STANDALONE --acceptance block",
      {
        method: "draft_model",
        model: "c/d",
        num_speculative_tokens: 3,
        draft_sample_method: "probabilistic",
        rejection_sample_method: "block",
      },
      /^$/,
    ],
    [
      "-m deepseek-ai/DeepSeek-V3 --drafter NEXTN --num-steps 1",
      { method: "mtp", num_speculative_tokens: 1 },
      /^$/,
    ],
    [
      "-m a/b --drafter NGRAM:max=5",
      {
        method: "ngram",
        num_speculative_tokens: 11,
        prompt_lookup_min: 1,
        prompt_lookup_max: 5,
      },
      /^$/,
    ],
    [
      "-m a/b --drafter SUFFIX",
      { method: "suffix", num_speculative_tokens: 11 },
      /^$/,
    ],
    [
      `${HEAD} --acceptance relaxed:acc=0.5 --elastic-draft`,
      { ...eagle, num_speculative_tokens: 3 },
      /^warning: --acceptance relaxed has no .* vLLM\nwarning: --elastic-draft has no/,
    ],
  ];
  for (const [line, expected, told] of cases) {
    const { code, out, err } = await run(`vllm ${line}`);
    assert.equal(code, 0, err);
    assert.deepEqual(speculative(out), expected, line);
    assert.match(err, told, line);
  }
  const one = await Deno.makeTempFile();
  await Deno.writeTextFile(one, '{"4": {"candidate_steps": [5]}, "16": {"candidate_steps": [0]}}');
  const { out, err } = await run(`vllm ${HEAD} --preset ${one} --max-batch 64`);
  await Deno.remove(one);
  assert.deepEqual(speculative(out).num_speculative_tokens_per_batch_size, [[1, 15, 5], [
    16,
    64,
    0,
  ]]);
  assert.equal(err, "", "steps by batch size alone are the same there");
});

Deno.test("serve-command: what has no equivalent is told, and what is left", async () => {
  const cases: [line: string, told: RegExp][] = [
    [`sglang ${HEAD} --policy nightjar`, /--policy nightjar has no equi.* drafts 3 steps/],
    [
      `vllm ${HEAD} --policy throughput-aware`,
      /throughput-aware has no equivalent in vLLM/,
    ],
    ["sglang -m a/b", /no draft model is named: give --draft auto/],
    [
      "sglang -m a/b --drafter SUFFIX",
      /SUFFIX has no equivalent in SGLang: NG/,
    ],
    [
      `sglang ${HEAD} --drafter HYBRID`,
      /HYBRID has no equi.*EAGLE3 drafts al/,
    ],
    [
      "sglang -m a/b --draft c/d --drafter STANDALONE --acceptance token",
      /SGLang has --speculative-use-rejection-sampling for EAGLE heads alone/,
    ],
  ];
  for (const [line, told] of cases) {
    const { code, err } = await run(line);
    assert.equal(code, 0, err);
    assert.match(err, told, line);
    assert.equal(err.trimEnd().includes("\n"), false);
    assert.equal((await run(`${line} --quiet`)).err, "");
  }
});

Deno.test("serve-command: sizes and addresses carry each engine's own names", async () => {
  const given =
    "--host 0.0.0.0 --port 9 --context-length 4096 --max-batch 16 --served-model-name x";
  const sglang = flags((await run(`sglang -m a/b@v1 --draft none ${given}`)).out);
  assert.deepEqual(sglang, {
    "--model-path": "a/b",
    "--revision": "v1",
    "--served-model-name": "x",
    "--host": "0.0.0.0",
    "--port": "9",
    "--context-length": "4096",
    "--max-running-requests": "16",
  });
  const vllm = await run(`vllm -m a/b --draft none ${given}`);
  assert.deepEqual(words(vllm.out).slice(0, 3), ["vllm", "serve", "a/b"]);
  assert.deepEqual(flags(vllm.out), {
    "--served-model-name": "x",
    "--host": "0.0.0.0",
    "--port": "9",
    "--max-model-len": "4096",
    "--max-num-seqs": "16",
  });
});

Deno.test("serve-command: mistakes are one line and print no command", async () => {
  const cases: [line: string, why: RegExp][] = [
    ["-m a/b", /ENGINE is missing; sglang or vllm/],
    ["sglang", /--model is missing/],
    ["tgi -m a/b", /"serve-command tgi": allowed is sglang, vllm/],
    ["sglang -m a/b --draft auto", /no draft for "a\/b" is known/],
    ["sglang -m a/b --draft c/d", /Cannot find out what kind of draft "c\/d" is/],
    [`sglang ${HEAD} --preset nope`, /"nope"/],
    [`sglang ${HEAD} --preset conservative --num-steps 5`, /"--num-steps 5"/],
    [`sglang ${HEAD} --policy nope`, /no such policy/],
  ];
  for (const [line, why] of cases) {
    const { code, out, err } = await run(line);
    assert.deepEqual([code, out], [2, ""], line);
    assert.match(err, why);
    assert.equal(err.trimEnd().includes("\n"), false, err);
  }
});
