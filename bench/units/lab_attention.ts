// Throw-away: attention.wgsl of several slots of one row each. args: SLOTS:CONTEXT:VARIANT,...
// variant: e<EARLY>
import process from "node:process";
import { attention, partialWords } from "../../shaders/attention/attention.ts";
import { chunkCounts, slotsOf } from "../../shaders/attention/attention_kernels.ts";
import { shader } from "../../shaders/shader.ts";
import type { Dispatch } from "../../src/gpu/kernel.ts";
import { tuning } from "../../src/gpu/matrix.ts";
import { storage } from "../../src/gpu/arena.ts";
import { openGpu } from "../../src/gpu/device.ts";
import { openProfiler } from "../../src/gpu/profile.ts";
import { compiler, type Program, submit } from "../../src/gpu/program.ts";
import { readBuffer } from "../../src/gpu/readback.ts";
import { blockTable, packRows } from "../../tests/shaders/rows.ts";
import { openAllocations } from "../allocations.ts";

const say = (text: string) => process.stdout.write(`${text}\n`);
const small = Deno.args.includes("--small");
const gpu = await openGpu({});
const make = compiler(gpu);
const profiler = await openProfiler(gpu, { queries: 2 });
const from = openAllocations(gpu);
const [heads, kvHeads, headDim] = [32, 8, 128];
const of = { ...tuning(false), software: false };
const time = async (programs: readonly Program[], runs: number) => {
  const steps = Array.from(
    { length: runs },
    (_, i) => (programs[i % programs.length] as Program).steps,
  ).flat();
  return 1000 * ((await profiler.time([{ steps }]))[0]?.end ?? NaN) / runs;
};
const text = (early: number, edit: (code: string) => string) => {
  const base = chunkCounts(headDim, 4, 1);
  const counts = {
    ...base,
    STORED: 1,
    OWN: 0,
    TURNS_OF_HEADS: 2,
    NORM_LANES: 32,
    PAIRS: 2,
    EARLY: early,
    LATE: (base.CELLS as number) - early,
  };
  const slots = {
    ...slotsOf("f32"),
    queries: "attention/queries/stored",
    prepare: "attention/queries/prepare_stored",
    kv_put: "kv/put_f32",
  };
  return edit(shader("attention/attention", { slots, counts }));
};
let warm = true;
for (const spec of Deno.args.filter((one) => !one.startsWith("--"))) {
  const [slotText = "", contextText = "", list = ""] = spec.split(":");
  const [slots, context] = [Number(slotText), Number(contextText)];
  const tablePages = context / 16;
  const words = slots * context * kvHeads * headDim;
  const copies = small ? 1 : Math.max(1, Math.ceil((256 << 20) / (8 * words)));
  const sizes = { heads, kvHeads, headDim, tablePages, kvDtype: "f32" } as const;
  const { sums, stats } = partialWords(sizes, slots, { software: false });
  const partial = {
    sums: { buffer: storage(gpu.device, "sums", 4 * sums) },
    stats: from.random(stats),
  };
  const [q, out] = [from.random(slots * 4096), from.random(slots * 4096)];
  const rows = from.words(
    new Uint32Array(
      packRows(
        Array.from(
          { length: slots },
          (_, slot) => ({ slot, position: context - 1, cell: context - 1, base: context }),
        ),
      ),
    ),
  );
  const pages = from.words(Uint32Array.from(blockTable(slots, tablePages)));
  const kvs = Array.from(
    { length: copies },
    () => [from.random(words), from.random(words)] as const,
  );
  const plans = kvs.map(([keys, values]) =>
    attention({ q, keys, values, rows, pages, partial, out }, {
      ...sizes,
      count: slots,
      perSlot: 1,
      paths: false,
      scale: 1 / Math.sqrt(headDim),
      tuning: of,
      label: "a",
    }).slice(0, 1)
  );
  await from.filled();
  const variants: { name: string; programs: Program[]; us: number[] }[] = [];
  for (const name of list.split(",")) {
    try {
      const programs: Program[] = [];
      for (const plan of plans) {
        const changed = plan.map((one): Dispatch => {
          if (name === "now") return one;
          const early = Number(name.match(/^e(\d)/)?.[1] ?? 8);
          const code = text(early, (code) => code);
          return { ...one, kernel: { ...one.kernel, name: `${one.kernel.name}_${name}`, code } };
        });
        programs.push(await make.compile(changed));
      }
      variants.push({ name, programs, us: [] });
    } catch (error) {
      say(`FAILED ${name}: ${String(error).slice(0, 300)}`);
    }
  }
  const start = performance.now();
  const [first] = variants;
  while (first && !small && performance.now() - start < (warm ? 800 : 30)) {
    await time(first.programs, 100);
  }
  warm = false;
  let reference: Uint32Array | undefined;
  const marks: string[] = [];
  for (const { programs } of variants) {
    submit(gpu, programs[0] as Program);
    const bits = new Uint32Array(
      await readBuffer(gpu, { buffer: partial.sums.buffer, size: 4 * Math.min(sums, 1 << 18) }),
    );
    reference ??= bits;
    marks.push(bits.some((word, i) => word !== reference?.[i]) ? " DIFFERENT" : "");
  }
  for (let round = 0; round < (small ? 1 : 7); round++) {
    for (const one of variants) one.us.push(await time(one.programs, small ? 1 : 100));
  }
  say(
    `${slots} slots ${context}: ` +
      variants.map(({ name, us }, i) =>
        `${name} ${us.toSorted((a, b) => a - b)[us.length >> 1]?.toFixed(1)}${marks[i]}`
      ).join("; "),
  );
}
Deno.exit(0);
