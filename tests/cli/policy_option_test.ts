import assert from "node:assert/strict";
import { policyOf, policyTexts } from "../../src/cli/options/policy_option.ts";
import { presetJson } from "../../src/engine/schedule/presets.ts";
import { UsageError } from "../../src/errors.ts";

Deno.test("a policy's text is its name and options", () => {
  assert.deepEqual(policyOf("static"), { policy: "static", options: {} });
  assert.deepEqual(policyOf("static:num_steps=3"), {
    policy: "static",
    options: { num_steps: 3 },
  });
  assert.deepEqual(policyOf("ema:candidate_steps=1/3/7,up_hysteresis=-.5"), {
    policy: "ema",
    options: { candidate_steps: [1, 3, 7], up_hysteresis: -0.5 },
  });
});

Deno.test("ema takes the config that --speculative-adaptive has, another preset, or a file", () => {
  assert.deepEqual(policyOf("ema").options, presetJson("conservative"));
  assert.deepEqual(policyOf("ema:config=aggressive").options, presetJson("aggressive"));
  const file = Deno.makeTempFileSync({ suffix: ".json" });
  try {
    const config = { "1": { candidate_steps: [0, 2] }, warmup_batches: 3 };
    Deno.writeTextFileSync(file, JSON.stringify(config));
    assert.deepEqual(policyOf(`ema:config=${file}`).options, config);
    const over = policyOf(`ema:warmup_batches=5,config=${file}`).options;
    assert.deepEqual(over, { ...config, warmup_batches: 5 });
    Deno.writeTextFileSync(file, "[3]");
    refused(`ema:config=${file},warmup_batches=5`, "it must be a JSON object, got [3]");
  } finally {
    Deno.removeSync(file);
  }
});

Deno.test("a policy that cannot be used is refused in one line that says why", () => {
  refused("statik", "no such policy, did you mean static? (there are static, ");
  refused("toString", "no such policy (there are static, ");
  refused("", "no such policy");
  refused("oracle:window=3", "it exists in eyrie simulate only");
  refused("static:steps=3", 'unknown option "steps", known: num_steps');
  refused("static:num_steps=x", "num_steps must be an integer of at least 0, got x");
  refused("static:num_steps=1/2", "num_steps must be");
  refused("static:", 'options are key=value with commas between them, got ""');
  refused("static:num_steps", 'got "num_steps"');
  refused("static:num_steps=", 'got "num_steps="');
  refused("static:=3", 'got "=3"');
  refused("static:num_steps=1,num_steps=2", 'option "num_steps" is given twice');
  refused("static:__proto__=1", 'unknown option "__proto__"');
  refused("ema:warmup_batches=-1", "warmup_batches must be an integer of at least 0, got -1");
  assert.throws(
    () => policyOf("ema:config=missing.json"),
    (error) => error instanceof UsageError && /there is no such file/.test(error.message),
  );
});

Deno.test("a list of policies keeps the options with their policy", () => {
  const parts = "static:num_steps=3,ema:config=a.json,update_interval=2,static".split(",");
  assert.deepEqual(policyTexts(parts), [
    "static:num_steps=3",
    "ema:config=a.json,update_interval=2",
    "static",
  ]);
  assert.deepEqual(policyTexts(["num_steps=3"]), ["num_steps=3"]);
});

function refused(text: string, why: string): void {
  assert.throws(() => policyOf(text), (error) => {
    assert(error instanceof UsageError);
    assert(error.message.startsWith(`Cannot use "--policy ${text}": `), error.message);
    assert(error.message.includes(why), error.message);
    return !error.message.includes("\n");
  });
}
