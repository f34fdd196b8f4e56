// The check itself: should Dawn not load, or not look, these fail and not only the run's last line.

import { deepEqual, equal, match } from "node:assert/strict";
import { CHECK, RECORD, RECORD_FOLDER } from "./processes.ts";

const ROOT = new URL("../..", import.meta.url);

/** What `deno` says, and its exit code. */
async function deno(args: readonly string[], env: Record<string, string> = {}) {
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: ROOT,
    env: { NO_COLOR: "1", ...env },
    stdin: "null",
  });
  const { code, stdout, stderr } = await child.output();
  const decode = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
  return { code, text: decode(stdout), errors: decode(stderr) };
}

async function inFolder(files: Record<string, string>, use: (folder: string) => Promise<void>) {
  const folder = await Deno.makeTempDir({ prefix: "eyrie-wgsl-test-" });
  try {
    for (const [name, text] of Object.entries(files)) {
      await Deno.writeTextFile(`${folder}/${name}`, text);
    }
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** `count` storage buffers and a workgroup of `LANES`, with a body of the test's. */
function kernelOf({ body, count = 1 }: { body: string; count?: number }): string {
  const more = Array.from(
    { length: count - 1 },
    (_, i) => `@group(0) @binding(${i + 1}) var<storage, read> x${i}: array<u32>;`,
  );
  return `override LANES: u32;
var<workgroup> shared_word: u32;
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
${more.join("\n")}
@compute @workgroup_size(LANES)
fn main(@builtin(local_invocation_index) lane: u32) {
  ${body}
}
`;
}

const GOOD = kernelOf({ body: "out[lane] = (1u << lane) | lane;" });
const LANES = JSON.stringify({ LANES: 64 });

Deno.test("what the specification allows passes, of features and above default limits too", async () => {
  const files = {
    "good-0.wgsl": GOOD,
    "good-0-1.json": LANES,
    "wide-0.wgsl": GOOD,
    "wide-0-1.json": JSON.stringify({ LANES: 1024 }),
    "half-0.wgsl": `enable f16;\nenable subgroups;\n${
      kernelOf({ body: "out[lane] = u32(f16(subgroupAdd(lane)));" })
    }`,
  };
  await inFolder(files, async (folder) => {
    const { code, text, errors } = await deno([...CHECK, folder]);
    deepEqual(
      { code, text },
      { code: 0, text: "Tint: 3 modules, 2 pipelines, no faults\n" },
      errors,
    );
  });
});

Deno.test("what only naga takes is a fault, with the kernel's name, the message and the line", async () => {
  const branch = "shared_word = out[0]; if (shared_word > 0u) { workgroupBarrier(); }";
  const files = {
    "good-0.wgsl": GOOD,
    "good-0-1.json": JSON.stringify({ LANES: 0 }),
    "mixed-0.wgsl": kernelOf({ body: "out[lane] = 1u << lane | lane;" }),
    "branch-0.wgsl": kernelOf({ body: branch }),
    "bound-0.wgsl": kernelOf({ body: "out[lane] = x7[lane];", count: 9 }),
  };
  await inFolder(files, async (folder) => {
    const { code, text, errors } = await deno([...CHECK, folder]);
    equal(code, 1, errors);
    match(
      text,
      /mixing '<<' and '\|' requires parenthesis\n {4}out\[lane\].*\n {2}in mixed-0:7:18\n/,
    );
    match(
      text,
      /'workgroupBarrier' must only be called from uniform control flow\n[^]* in branch-0:/,
    );
    match(text, /9 storage buffers, at most 8 expected by [^]*? in bound-0\n/);
    match(text, /workgroup_size[^]*? in good-0 with \{"LANES":0\}\n/);
    match(text, /\nTint: 4 modules, 1 pipelines, with faults\n$/);
  });
});

const COMPILE = `
const device = await (await navigator.gpu.requestAdapter()).requestDevice();
const [good, bad] = Deno.env.get("SOURCES").split("//next");
device.pushErrorScope("validation");
for (const [label, code] of [["a b", good], ["a b", good], ["bad", bad], [undefined, good]]) {
  const module = device.createShaderModule({ label, code });
  if (code === bad) continue;
  for (const LANES of [64, 32]) {
    const compute = { module, entryPoint: "main", constants: { LANES } };
    device.createComputePipeline({ layout: "auto", compute });
  }
}
await device.popErrorScope();
`;

Deno.test("every module that Deno takes is kept once, with its pipelines' constants", async () => {
  await inFolder({ "compile.js": COMPILE }, async (folder) => {
    const env = { [RECORD_FOLDER]: folder, SOURCES: `${GOOD}//next nonsense` };
    const { code, errors } = await deno(["run", "-A", ...RECORD, `${folder}/compile.js`], env);
    equal(code, 0, errors);
    const files = await Array.fromAsync(Deno.readDir(folder), ({ name }) => name);
    const kinds = files.map((name) => name.replaceAll(/-\w{8}/g, "-#")).toSorted();
    deepEqual(kinds, [
      ...["a_b-#-#.json", "a_b-#-#.json", "a_b-#.wgsl", "compile.js"],
      ...["unnamed-#-#.json", "unnamed-#-#.json", "unnamed-#.wgsl"],
    ]);
    const kept = files.find((name) => /^a_b.*wgsl$/.test(name));
    equal(await Deno.readTextFile(`${folder}/${kept}`), GOOD);
  });
});

// deno task test names the folder, a plain deno test does not.
const FOLDER = Deno.env.get(RECORD_FOLDER);

Deno.test({
  name: "this very run is recorded",
  ignore: FOLDER === undefined,
  async fn() {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter?.requestDevice();
    await device?.createShaderModule({ label: "recorded", code: GOOD }).getCompilationInfo();
    const files = await Array.fromAsync(Deno.readDir(FOLDER ?? ""), ({ name }) => name);
    equal(files.filter((name) => /^recorded-.*\.wgsl$/.test(name)).length, 1);
  },
});
