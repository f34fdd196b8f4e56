import assert from "node:assert/strict";
import { UsageError } from "../../src/errors.ts";
import { openCheckpoint } from "../../src/model/checkpoint/checkpoint.ts";
import type { Checkpoint } from "../../src/model/files/checkpoint_type.ts";
import { convertCheckpoint, type ConvertOptions } from "../../src/model/checkpoint/convert.ts";
import { makeTemporary } from "../../src/model/checkpoint/temporary_folder.ts";
import { quantizableTensors } from "../../src/model/weights/quantizable.ts";
import { type Files, storedToy, tensorFile } from "./folders.ts";
import { CONFIG, fileOf } from "./quantized/checkpoints.ts";
import { LAYOUTS } from "./quantized/layouts.ts";
import { torchFile, type TorchTensor } from "./torch_files.ts";

const BYTES = Uint8Array.from({ length: 24 }, (_, i) => i);
const SHORTS: TorchTensor = { storage: "ShortStorage", key: "0", elements: 12, shape: [3, 4] };
const FLAGS: TorchTensor = { storage: "BoolStorage", key: "1", elements: 3, shape: [3] };
const MODEL = torchFile(
  { flags: FLAGS, shorts: SHORTS, row: { ...SHORTS, offset: 4, shape: [4] } },
  { 0: BYTES, 1: Uint8Array.of(1, 0, 1) },
);
const FILES: Files = {
  "config.json": { model_type: "llama" },
  "tokenizer.json": { version: "1.0" },
  "chat_template.jinja": "{{ messages }}",
  "pytorch_model.bin": MODEL,
  "pytorch_model.bin.index.json": { weight_map: {} },
  "training_args.bin": "secret",
  ".gitattributes": "*",
};

/** Runs `use` with `in/` of these files, and the folder around it. */
async function withInput(files: Files, use: (at: string) => Promise<void>): Promise<void> {
  const at = Deno.makeTempDirSync({ prefix: "eyrie-test-" });
  try {
    Deno.mkdirSync(`${at}/in`);
    for (const [file, content] of Object.entries(files)) {
      const text = typeof content === "string" ? content : JSON.stringify(content);
      if (content instanceof Uint8Array) Deno.writeFileSync(`${at}/in/${file}`, content);
      else Deno.writeTextFileSync(`${at}/in/${file}`, text);
    }
    await use(at);
  } finally {
    Deno.removeSync(at, { recursive: true });
  }
}

function convert(at: string, options: Partial<ConvertOptions> = {}) {
  return convertCheckpoint({
    from: `${at}/in`,
    to: `${at}/out`,
    force: false,
    shardBytes: 1e9,
    ...options,
  });
}

function contents(checkpoint: Checkpoint): Record<string, unknown> {
  return Object.fromEntries(
    checkpoint.tensors.values().map((tensor) => {
      const bytes = new Uint8Array(tensor.size);
      checkpoint.read(tensor, 0, bytes);
      return [tensor.name, [tensor.dtypeName, tensor.shape, bytes.toHex()]];
    }),
  );
}

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test("torch's file becomes safetensors with the same tensors; configs go along", async () => {
  await withInput(FILES, async (at) => {
    const seen: number[] = [];
    const converted = await convert(at, { onProgress: ({ done }) => void seen.push(done) });
    assert.deepEqual([converted?.tensors, converted?.bytes], [3, 35]);
    assert.deepEqual(seen, [24, 32, 35]);
    const expected = ["chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json"];
    assert.deepEqual(names(`${at}/out`), expected);
    assert.deepEqual(names(at), ["in", "out"]);
    using before = openCheckpoint(`${at}/in`);
    using after = openCheckpoint(`${at}/out`);
    assert.deepEqual(contents(after), contents(before));
    assert.deepEqual([...after.tensors.values()].map(({ begin }) => begin % 2), [0, 0, 0]);
  });
});

Deno.test("shards hold no more than is allowed, and a larger tensor stands alone", async () => {
  const files = {
    "config.json": {},
    "model.safetensors": tensorFile({ a: [4], b: [4], c: [40], d: [2] }),
  };
  await withInput(files, async (at) => {
    const converted = await convert(at, { shardBytes: 16 });
    const shard = (i: number) => `model-0000${i}-of-00003.safetensors`;
    const index = "model.safetensors.index.json";
    assert.deepEqual(converted?.files, [shard(1), shard(2), shard(3), index, "config.json"]);
    using before = openCheckpoint(`${at}/in`);
    using after = openCheckpoint(`${at}/out`);
    assert.deepEqual(contents(after), contents(before));
    const where = ["a", "b", "c", "d"].map((name) => after.tensors.get(name)?.file);
    assert.deepEqual(where, [shard(1), shard(1), shard(2), shard(3)]);
  });
});

async function refuses(run: () => Promise<unknown>, message: RegExp): Promise<void> {
  await assert.rejects(run, (error: unknown) => {
    assert.ok(error instanceof UsageError, String(error));
    assert.match(error.message, message);
    return true;
  });
}

Deno.test("--quantize: what cannot be quantized is refused before anything is written", async () => {
  const fledgling = new URL("../../models/fledgling/", import.meta.url).pathname;
  await withInput(FILES, async (at) => {
    const to = (to: "q8" | "q4") => ({ to, names: quantizableTensors });
    const out = (from: string) => convert(at, { from, quantize: to("q4") });
    await refuses(() => out(`${fledgling}eagle3`), /it is an EAGLE head; allowed is a whole model/);
    await refuses(() => out(`${at}/in`), /Cannot use ".*": /);
    const converted = await convert(at, { from: `${fledgling}target`, quantize: to("q8") });
    assert.deepEqual(names(at), ["in", "out"]);
    const file = Deno.statSync(`${at}/out/model.safetensors`);
    assert.ok(file.size >= (converted?.bytes ?? 0) && file.size < 8_000_000);
    const again = { from: `${at}/out`, to: `${at}/again` };
    await refuses(() => convert(at, { ...again, quantize: to("q4") }), /it is quantized already/);
    // As they are stored.
    await convert(at, again);
    using before = openCheckpoint(`${at}/out`);
    using after = openCheckpoint(`${at}/again`);
    assert.deepEqual(contents(after), contents(before));
  });
});

Deno.test({
  name: "--quantize: files are closed where stacks of experts are refused",
  sanitizeResources: true, // Deno checks it only where it is asked to.
  async fn() {
    const blocks = "model.layers.0.mlp.experts.down_proj_blocks";
    const files = { "config.json": CONFIG, "model.safetensors": tensorFile({ [blocks]: [8] }) };
    await withInput(files, async (at) => {
      const quantize = { to: "q8", names: () => new Set<string>() } as const;
      await refuses(() => convert(at, { quantize }), /down_proj_blocks" has no scales/);
    });
  },
});

Deno.test("--quantize: a quantized model is named as one, also if config.json says nothing or says it of its text", () => {
  const refused = (name: string, config: Readonly<Record<string, unknown>>) => {
    const { stored } = LAYOUTS[name]!.write({ prefix: "model.layers.0.q", rows: 128, cols: 128 });
    const files = { "config.json": config, "model.safetensors": fileOf(stored) };
    const message = 'Cannot quantize "toy": it is quantized already';
    assert.throws(() => quantizableTensors(storedToy(files)), { message }, name);
  };
  for (const name of ["modelopt fp8", "modelopt nvfp4"]) refused(name, CONFIG);
  const fp8 = LAYOUTS["fp8, blocks"]!.config;
  refused("fp8, blocks", { model_type: "mistral3", text_config: { quantization_config: fp8 } });
});

Deno.test("what is there stays unless forced, and then only a checkpoint is replaced", async () => {
  await withInput(FILES, async (at) => {
    Deno.mkdirSync(`${at}/out`);
    Deno.writeTextFileSync(`${at}/out/diary.txt`, "dear");
    await refuses(() => convert(at), /it exists already; --force replaces it/);
    await refuses(() => convert(at, { force: true }), /holds other files than a checkpoint/);
    Deno.writeTextFileSync(`${at}/out/config.json`, "{}");
    await convert(at, { force: true });
    assert.deepEqual(names(`${at}/out`).includes("diary.txt"), false);
    await refuses(() => convert(at, { to: at, force: true }), /it holds what is to be converted/);
    await refuses(() => convert(at, { to: `${at}/in`, force: true }), /holds what is to be conv/);
    const file = `${at}/in/config.json`;
    await refuses(() => convert(at, { to: file, force: true }), /it is not a folder/);
    await refuses(() => convert(at, { to: `${file}/x` }), /Cannot write ".*config\.json\/x"/);
    assert.deepEqual(names(at), ["in", "out"]);
  });
});

Deno.test("an interrupted or failed conversion leaves nothing behind", async () => {
  await withInput(FILES, async (at) => {
    const stop = new AbortController();
    const onProgress = () => stop.abort();
    assert.equal(await convert(at, { signal: stop.signal, onProgress }), undefined);
    assert.deepEqual(names(at), ["in"]);
    const cut = () => Deno.truncateSync(`${at}/in/pytorch_model.bin`, 300);
    await refuses(() => convert(at, { onProgress: cut }), /the file changed while it was read/);
    assert.deepEqual(names(at), ["in"]);
  });
});

/** Runs a conversion in another process, which kills itself somewhere in it. */
async function convertAndDie(at: string, setup: string): Promise<void> {
  const module = new URL("../../src/model/checkpoint/convert.ts", import.meta.url);
  const script = `
    import { convertCheckpoint } from "${module}";
    ${setup};
    const [from, to] = ["${at}/in", "${at}/out"];
    await convertCheckpoint({ from, to, force: false, shardBytes: 1e9, onProgress });
  `;
  Deno.writeTextFileSync(`${at}/in/killed.ts`, script);
  const args = ["run", "-A", "--no-check", `${at}/in/killed.ts`];
  const { signal } = await new Deno.Command(Deno.execPath(), { args }).output();
  assert.equal(signal, "SIGKILL");
}

Deno.test("a conversion killed before its folder gets its name leaves nothing for good", async () => {
  await withInput(FILES, async (at) => {
    const setup = `
      const onProgress = () => {};
      const { rename } = Deno;
      Deno.rename = async (from, to) => {
        if (to === "${at}/out") Deno.kill(Deno.pid, "SIGKILL");
        await rename(from, to);
      }`;
    await convertAndDie(at, setup);
    assert.equal(names(at).length, 2, "in, and what was begun");
    await convert(at);
    assert.deepEqual(names(at), ["in", "out"]);
  });
});

Deno.test("what a killed conversion left is removed by the next one, what lives is not", async () => {
  await withInput(FILES, async (at) => {
    await convertAndDie(at, "const onProgress = () => Deno.kill(Deno.pid, 'SIGKILL')");
    assert.equal(names(at).length, 2, "in, and what was begun");
    // Killed while it put the new one in the place of the old one; and somebody else's folder.
    for (const name of [".out-1a2b.partial.old", ".mine-1a2b.partial"]) {
      Deno.mkdirSync(`${at}/${name}`);
    }
    const others = ["out", "other"].map((name) => convert(at, { to: `${at}/${name}` }));
    assert.deepEqual((await Promise.all(others)).map((done) => done?.tensors), [3, 3]);
    assert.deepEqual(names(at), [
      ".mine-1a2b.partial",
      ".out-1a2b.partial.old",
      "in",
      "other",
      "out",
    ]);
    await convert(at, { force: true });
    assert.deepEqual(names(at), [".mine-1a2b.partial", "in", "other", "out"]);
    assert.deepEqual(names(`${at}/out`).filter((name) => name.startsWith(".")), []);
  });
});

Deno.test("a file beside the weights that cannot be read is named, not the new folder", async () => {
  await withInput(FILES, async (at) => {
    Deno.symlinkSync("../../blobs/gone", `${at}/in/README.md`);
    await refuses(() => convert(at), /^Cannot read ".*\/in\/README\.md": /);
    assert.deepEqual(names(at), ["in"]);
  });
});

Deno.test("a folder that is about to get its name is not taken for an abandoned one", async () => {
  await withInput(FILES, async (at) => {
    const temporary = await makeTemporary(`${at}/out`);
    Deno.writeTextFileSync(`${temporary.path}/config.json`, "{}");
    const { remove } = Deno;
    try {
      // Another process begins at the moment when this one removes its lock file.
      Deno.remove = async (path, options) => {
        Deno.remove = remove;
        await using _other = await makeTemporary(`${at}/other`);
        await Deno.remove(path, options);
        await using _later = await makeTemporary(`${at}/later`);
      };
      await temporary.moveIn();
    } finally {
      Deno.remove = remove;
      await temporary[Symbol.asyncDispose]();
    }
    assert.deepEqual(names(at), ["in", "out"]);
    assert.deepEqual(names(`${at}/out`), ["config.json"]);
  });
});

Deno.test("a small file that would fill a disk is refused", async () => {
  const tensors = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`t${i}`, SHORTS]));
  const bomb = torchFile(
    Object.fromEntries(
      Object.keys(tensors).map((name) => [name, { ...SHORTS, elements: 4e5, shape: [4e5] }]),
    ),
    { 0: new Uint8Array(8e5) },
  );
  await withInput({ "config.json": {}, "pytorch_model.bin": bomb }, async (at) => {
    await refuses(() => convert(at), /Cannot convert ".*": its tensors share storages/);
  });
});
