// Who rounds x of a matmul on matrix units to f16: the norm before it, a dispatch before it, or the matmul itself.

import assert from "node:assert/strict";
import type { Precision, TensorMatrices } from "../../src/gpu/matrices_on_units.ts";
import type { Matrix } from "../../src/gpu/matrix.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { Graph } from "../../src/model/graph/graph.ts";
import { lower } from "../../src/model/lower/lower.ts";
import { contextOf, LARGE, matrix } from "./layer_context.ts";

const LIMITS = {
  maxComputeInvocationsPerWorkgroup: 1024,
  maxComputeWorkgroupStorageSize: 49152,
  maxStorageBuffersPerShaderStage: 20,
};
const HIDDEN = 2048;
const [FIRST, SECOND] = [matrix(4096, HIDDEN), matrix(4096, HIDDEN)];

function onUnits(matrices: readonly Matrix[], precision: Precision): TensorMatrices {
  const stored = { scales: LARGE, stored: "f16" } as const;
  return {
    unit: { m: 16, n: 16, k: 16, lanes: 32 },
    limits: LIMITS,
    precision,
    shards: new Map(matrices.flatMap(({ shards }) => shards.map((shard) => [shard, stored]))),
    experts: new Map(),
    xScales: LARGE,
  };
}

/** Labels and kernels of x, normed or not, times matrices. */
function kernelsOf(rows: number, { precision = "f16", normed = true, matrices = [FIRST] }: {
  readonly precision?: Precision;
  readonly normed?: boolean;
  readonly matrices?: readonly Matrix[];
} = {}): [string, string][] {
  const rules = { ...tuning(false, LIMITS), tensor: onUnits(matrices, precision) };
  const context = {
    ...contextOf({ hidden: HIDDEN, cells: 512, rows, tuning: rules }),
    scales: { normed: LARGE, reduced: LARGE, stride: rows, jobs: 1 },
  };
  const graph = new Graph("all");
  const x = graph.input("x", rows, HIDDEN, LARGE);
  const input = normed ? graph.norm(x, { weight: LARGE, eps: 1e-6 }, "norm") : x;
  for (const [i, one] of matrices.entries()) {
    graph.linear(input, one, { label: `matmul${i}`, at: LARGE });
  }
  return lower(graph, context).part("all").map(({ label, kernel }) => [label, kernel.name]);
}

/** The part of a kernel's name that says how it takes or stores x. */
function formsOf(kernels: readonly [string, string][]): string[] {
  return kernels.map(([label, name]) =>
    [label, ...name.split("_").filter((part) => ["half", "pair", "xf16"].includes(part))]
      .join(" ")
  );
}

Deno.test("norms store x of two rows and more as f16, two numbers each with --precision f32", () => {
  for (const rows of [2, 16, 17, 64, 65]) {
    assert.deepEqual(formsOf(kernelsOf(rows)), ["norm half", "matmul0 xf16"], `${rows} rows`);
  }
  for (const rows of [2, 16, 17, 64]) {
    assert.deepEqual(
      formsOf(kernelsOf(rows, { precision: "f32" })),
      ["norm pair", "matmul0 xf16"],
      `${rows} rows`,
    );
  }
});

Deno.test("x stays f32 at one row, where two matmuls read it, and in prompts with --precision f32", () => {
  const plain = [
    kernelsOf(1),
    kernelsOf(8, { matrices: [FIRST, SECOND] }),
    kernelsOf(65, { precision: "f32" }),
  ];
  for (const kernels of plain) {
    assert.deepEqual(formsOf(kernels), kernels.map(([label]) => label));
  }
});

Deno.test("a dispatch rounds x of prompts where no norm does, not that of rounds", () => {
  const [first, ...others] = kernelsOf(65, { normed: false });
  assert.equal(first?.[1], "half_rows");
  assert.deepEqual(formsOf(others), ["matmul0 xf16"]);
  const rounds = kernelsOf(64, { normed: false });
  assert.deepEqual(formsOf(rounds), rounds.map(([label]) => label));
});

/** Labels and kernels of attention and the matmul of its output. */
function attended(
  rows: number,
  { slots = 1, cells = 2048, read = false }: {
    readonly slots?: number;
    readonly cells?: number;
    /** Whether something else reads the output. */
    readonly read?: boolean;
  } = {},
): [string, string][] {
  const rules = { ...tuning(false, LIMITS), tensor: onUnits([FIRST, SECOND], "f16") };
  const context = contextOf({ hidden: HIDDEN, cells, rows, tuning: rules });
  const graph = new Graph("all");
  const q = graph.input("q", rows, HIDDEN, LARGE);
  const heads = { heads: 16, kvHeads: 8, headDim: 128, tablePages: context.tablePages } as const;
  const out = graph.attention(q, {
    heads: { ...heads, kvDtype: "f32" },
    scale: 0.1,
    cap: undefined,
    window: undefined,
    kv: { keys: LARGE, values: LARGE },
    of: { rows: LARGE, count: rows, perSlot: rows / slots },
  }, "attention");
  graph.linear(out, FIRST, { label: "o", at: LARGE });
  if (read) graph.linear(out, SECOND, { label: "other", at: LARGE });
  return lower(graph, context).part("all").map(({ label, kernel }) => [label, kernel.name]);
}

Deno.test("attention rounds x of a prompt's matmul, at any length of context, where nothing else reads it", () => {
  for (const [rows, cells] of [[128, 2048], [512, 2048], [512, 32768], [1024, 32768]] as const) {
    const kernels = attended(rows, { cells });
    const last = kernels.filter(([label]) => label === "attention.combine").at(-1);
    assert.equal(last?.[1], "attention_combine_rows_128_scale_half1", `${rows} rows of ${cells}`);
    assert.deepEqual(formsOf(kernels.slice(-1)), ["o xf16"]);
    assert.ok(!kernels.some(([, name]) => name === "half_rows"));
  }
  // Few rows of each slot are not attended in tiles, and what is read twice stays f32.
  for (const kernels of [attended(512, { slots: 128 }), attended(512, { read: true })]) {
    assert.ok(!kernels.some(([, name]) => name.includes("_half")));
    assert.ok(kernels.some(([, name]) => name === "half_rows"));
  }
});

/** Labels and kernels of the experts of a mixture for some rows of a forward. */
function expertsOf(rows: number): [string, string][] {
  const routing = {
    scores: "softmax",
    numExperts: 32,
    topK: 8,
    groups: 1,
    topGroups: 1,
    groupBest: 1,
    normalize: true,
    scale: 1,
  } as const;
  const [gateUp, down] = [matrix(32 * 1024, HIDDEN), matrix(32 * HIDDEN, 512)];
  const stored = { scales: LARGE, stored: "f16_tiles" } as const;
  const shards = [...gateUp.shards, ...down.shards].map((shard) => [shard, stored] as const);
  const tensor = { ...onUnits([], "f16"), experts: new Map(shards) };
  const rules = { ...tuning(false, LIMITS), tensor };
  const graph = new Graph("all");
  const x = graph.input("x", rows, HIDDEN, LARGE);
  const logits = graph.linear(x, matrix(32, HIDDEN), { label: "router" });
  const jobs = { routing, shared: 0 };
  const of = { bias: undefined, factors: undefined, jobs };
  const { experts, shares } = graph.route(logits, of, "route");
  const both = graph.expertLinear(x, { matrix: gateUp, experts, jobs, perJob: false }, "gateUp");
  const act = graph.gate(both, "silu", "gate");
  const outputs = graph.expertLinear(act, { matrix: down, experts, jobs, perJob: true }, "down");
  graph.add(x, graph.combine(outputs, shares, "combine"), "out", LARGE);
  return lower(graph, contextOf({ hidden: HIDDEN, cells: 512, rows, tuning: rules })).part("all")
    .map(({ label, kernel }) => [label, kernel.name]);
}

Deno.test("a dispatch rounds x of experts in prompts, not in rounds, which have more jobs than that", () => {
  const rounded = (rows: number) =>
    expertsOf(rows).filter(([, name]) => name === "half_rows").map(([label]) => label);
  assert.deepEqual([8, 16, 64].map(rounded), [[], [], []]);
  assert.deepEqual(rounded(65), ["gateUp.halves", "down.halves"]);
});
