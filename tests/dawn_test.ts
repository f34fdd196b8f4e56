/**
 * Test files that run on Dawn too, each in a process of its own: beside Deno's device Dawn crashes.
 * They are skipped where its package is not in the cache or it finds no adapter.
 */
import { deepEqual, equal } from "node:assert/strict";

const ROOT = new URL("..", import.meta.url);

/**
 * Devices and reads, matrix units and what they take, the golden values, text that equals plain decoding's, the command
 * line.
 */
const FILES = [
  "tests/gpu/program_test.ts",
  "tests/gpu/profile_test.ts",
  "tests/gpu/readback_test.ts",
  "tests/kernels/matmul_tensor_test.ts",
  "tests/kernels/matmul_on_units_test.ts",
  "tests/kernels/norms_on_units_test.ts",
  "tests/kernels/half_rows_test.ts",
  "tests/kernels/paired_rows_test.ts",
  "tests/kernels/expert_tensor_test.ts",
  "tests/kernels/experts_on_units_test.ts",
  "tests/engine/experts_on_units_test.ts",
  "tests/engine/mixture_hardware_test.ts",
  "tests/engine/prompts_on_units_test.ts",
  "tests/engine/precision_test.ts",
  "tests/engine/sizes_test.ts",
  "tests/engine/golden_test.ts",
  "tests/engine/lossless_test.ts",
  "tests/engine/callers_test.ts",
  "tests/engine/lossless_hardware_test.ts",
  "tests/lossless/families_test.ts",
  "tests/lossless/schedules_test.ts",
];

async function deno(args: readonly string[]): Promise<{ code: number; text: string; out: string }> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    env: {
      EYRIE_WEBGPU: "dawn",
      EYRIE_MATRIX_UNITS: "on",
      NO_COLOR: "1",
      XDG_RUNTIME_DIR: "/tmp",
    },
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  const [out, errors] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  return { code, out: out ?? "", text: `${out}${errors}` };
}

const eyrie = (...args: string[]) => deno(["run", "-A", "main.ts", ...args]);

const doctor = await eyrie("doctor", "--json");
const ignore = doctor.code !== 0;

Deno.test({
  name: "Dawn: doctor tells the adapter",
  ignore,
  fn() {
    const { webgpu, adapter } = JSON.parse(doctor.out);
    deepEqual({ webgpu, problem: adapter.problem }, { webgpu: "dawn", problem: null });
  },
});

Deno.test({
  name:
    "Dawn: an answer in a thread of its own is plain decoding's at every setting, and it ends well",
  ignore,
  async fn() {
    const answer = async (...flags: string[]) => {
      const fixed = ["--temperature", "0", "--max-tokens", "48", "--json"];
      const { code, out, text } = await eyrie("generate", ...fixed, ...flags, "Tell me of a fox.");
      equal(code, 0, text);
      const { output_ids, device } = JSON.parse(out);
      equal(device.webgpu, "dawn");
      return output_ids;
    };
    const plain = await answer("--draft", "none");
    for (const steps of ["1", "3", "7"]) deepEqual(await answer("--num-steps", steps), plain);
    const tree = [
      "--num-steps",
      "3",
      "--speculative-eagle-topk",
      "2",
      "--speculative-num-draft-tokens",
      "8",
    ];
    deepEqual(await answer(...tree), plain);
  },
});

for (const file of FILES) {
  Deno.test({
    name: `Dawn: ${file}`,
    ignore,
    async fn() {
      const { code, text } = await deno(["test", "-A", "--no-check", file]);
      equal(code, 0, text);
    },
  });
}
