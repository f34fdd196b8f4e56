import assert from "node:assert/strict";
import { parseDraftConfig } from "../../src/model/config/draft_config.ts";
import { allMemory } from "../../src/engine/load/memory_report.ts";
import { kvBytesPerToken, openPaper } from "../../src/engine/load/paper.ts";
import { PAPER_ADAPTER } from "../../src/gpu/paper.ts";
import { parameterCount } from "../../src/model/report/parameters.ts";
import { inspectReport } from "../../src/model/report/report.ts";
import { targetTensors } from "../../src/model/weights/tensors.ts";
import { draft, EAGLE3, target, TARGET_JSON } from "./drafts.ts";
import { shapesOf, tensorFile, toyCheckpoint } from "./folders.ts";

const CONFIG = target();
const SPECS = targetTensors(CONFIG);
// Each layer: q 16*16, k and v 8*16, o 16*16, three 24*16, two norms of 16.
const LAYER_MATRICES = 256 + 128 + 128 + 256 + 3 * 384;
const MATRICES = 2 * 40 * 16 + 6 * LAYER_MATRICES;
const VECTORS = 6 * 2 * 16 + 16;

function big(): ReturnType<typeof toyCheckpoint> {
  const files = { "config.json": TARGET_JSON, "model.safetensors": tensorFile(shapesOf(SPECS)) };
  return toyCheckpoint(files);
}

Deno.test("parameters and bytes add up", () => {
  assert.equal(parameterCount(SPECS), MATRICES + VECTORS);
  const models = { target: { checkpoint: big(), config: CONFIG }, draft: undefined };
  const { tensorBytes } = openPaper(models, {}, PAPER_ADAPTER).measured;
  assert.equal(tensorBytes.target, 2 * MATRICES + 4 * VECTORS);
  assert.equal(kvBytesPerToken(CONFIG), 2 * 4 * 6 * 8);
});

Deno.test("a report tells of both, and why they do not fit", () => {
  const inspected = { checkpoint: big(), config: CONFIG, warnings: [] };
  const head = draft(EAGLE3, { vocab_size: 48 });
  const config = parseDraftConfig(head, CONFIG);
  const drafting = { checkpoint: head, config, warnings: ["extra"] };
  const all = allMemory({ target: inspected, draft: drafting }, {});
  const report = inspectReport(inspected, drafting, all);
  assert.equal(report.draft?.fits, false);
  assert.match(report.draft.misfit ?? "", /vocabulary/);
  assert.deepEqual(report.draft.warnings, ["extra"]);
  assert.deepEqual(report.target.files, [{
    name: "model.safetensors",
    tensors: SPECS.length,
    bytes: 2 * (MATRICES + VECTORS),
  }]);
  assert.deepEqual(report.draft.dtypes.map(({ name }) => name), ["BF16", "BOOL", "I64"]);
  const { memory } = report;
  const whole = memory.weightBytes + memory.kvBytes + memory.scratchBytes;
  assert.equal(memory.totalBytes, whole);
});

Deno.test("a report without a draft", () => {
  const inspected = { checkpoint: big(), config: CONFIG, warnings: [] };
  const all = allMemory({ target: inspected, draft: undefined }, {});
  const report = inspectReport(inspected, null, all);
  assert.equal(report.draft, null);
  assert.equal(report.memory.kvBytesPerToken, kvBytesPerToken(CONFIG));
});
