/** Runs a case: its requests in an engine that drafts, compared with plain decoding of each by itself. */
import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import type { LocalHooks } from "../../src/engine/options.ts";
import { gpuMemory } from "../../src/gpu/memory.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { assertNothingHeld } from "../engine/held.ts";
import { type LocalEngine, type LocalOptions, type Machine, openEngine } from "../engine/open.ts";
import { openGpu } from "../gpu/shared.ts";
import type { Case } from "./axes.ts";
import { budget, cut, restless } from "./policies.ts";
import { predictionOf, requestOf } from "./requests.ts";

const TARGET = new URL("../../models/fledgling/target", import.meta.url).pathname;

/** Tokens of the longest prompt and the longest answer together. */
const CONTEXT = 112;
const PAGE = 16;

/** What decides the bits of logits: plain decoding is run once for each of these. */
type Logits = Pick<Case, "numbers" | "kernels">;

/** A device that submits as Dawn's do begins a group of rounds before the one before it is read. */
export function machineOf({ kernels, groups }: Pick<Case, "kernels" | "groups">): Machine {
  return {
    openGpu: async () => {
      const gpu = await openGpu();
      const software = kernels === "software" && gpu.info.software;
      const webgpu = groups === "two" ? "dawn" : gpu.info.webgpu;
      return { ...gpu, info: { ...gpu.info, software, webgpu } };
    },
    gpuMemory,
  };
}

function optionsOf(
  { numbers }: Logits,
): Required<Pick<LocalOptions, "model" | "device" | "limits">> {
  const [weights, kvDtype] = {
    "bf16, f32": ["bf16", "f32"],
    "q8, f16": ["q8", "f16"],
    "q4, bf16": ["q4", "bf16"],
  }[numbers] as ["bf16" | "q8" | "q4", "f32" | "f16" | "bf16"];
  return {
    model: weights === "bf16" ? {} : { quantize: weights },
    device: { costs: "off" },
    limits: { kvDtype, constrained: true, contextLength: CONTEXT },
  };
}

/** An engine that decodes plainly, one request at a time, and what it has decoded. */
interface Reference {
  readonly engine: LocalEngine;
  readonly results: Map<string, Promise<GenerateResult>>;
}

/** References by what decides their logits, opened when first wanted. */
export interface References extends AsyncDisposable {
  plainResult(of: Case, n: number): Promise<GenerateResult>;
}

export function openReferences(): References {
  const references = new Map<string, Promise<Reference>>();
  const open = async (logits: Logits): Promise<Reference> => {
    const { model, device, limits } = optionsOf(logits);
    const options = {
      model: { ...model, draft: "none" },
      device,
      limits: { ...limits, prefixCache: false },
    };
    return {
      engine: await openEngine(options, machineOf({ ...logits, groups: "one" })),
      results: new Map(),
    };
  };
  return {
    async plainResult(of, n) {
      const { numbers, kernels } = of;
      const { engine, results } = await references.getOrInsertComputed(
        `${numbers}, ${kernels}`,
        () => open({ numbers, kernels }),
      );
      const request = requestOf(engine, of, n);
      const decode = () => resultOf(engine.submit(request));
      return await results.getOrInsertComputed(JSON.stringify(request), decode);
    },
    async [Symbol.asyncDispose]() {
      for (const reference of references.values()) (await reference).engine[Symbol.dispose]();
    },
  };
}

function draftOf({ drafter }: Case): NonNullable<LocalOptions["model"]> {
  return drafter === "STANDALONE" ? { draft: TARGET, algorithm: drafter } : { algorithm: drafter };
}

function planOf({ shape, policy, ownSteps }: Case): NonNullable<LocalHooks["plan"]> {
  if (shape.includes(":")) return statically(treeNamed(shape));
  const depth = Number(shape);
  if (policy === "static") return statically(depth, ownSteps === "0 and 1" ? [0, 1] : []);
  return { policy: { restless, cut, budget }[policy](depth) };
}

/** More requests than run at once, so that some wait. */
function requestCount({ maxBatch, kernels }: Pick<Case, "maxBatch" | "kernels">): number {
  return Math.min(maxBatch + 1, kernels === "hardware" ? 3 : 5);
}

/**
 * Returns what the engine counted.
 *
 * @throws AssertionError where a text differs from plain decoding's, or a page is not given back.
 */
export async function runCase(of: Case, references: References): Promise<LocalEngine["counts"]> {
  const plain: GenerateResult[] = [];
  for (let n = 0; n < requestCount(of); n++) plain.push(await references.plainResult(of, n));
  const { model, device, limits } = optionsOf(of);
  using engine = await openEngine({
    model: { ...model, ...draftOf(of) },
    device,
    limits: {
      ...limits,
      maxBatch: of.maxBatch,
      roundsPerSync: of.roundsPerSync,
      prefixCache: of.prefixCache,
      predictions: of.prediction !== "none",
      // Two requests are admitted with five pages each, and they cannot both get a sixth.
      ...of.pages === "few" ? { maxKvTokens: 10 * PAGE } : {},
      ...of.promptRows === "few" ? { maxBatchedRows: 16 } : {},
      ...of.elasticDraft ? { elasticDraft: true } : {},
    },
    hooks: {
      plan: planOf(of),
      residency: { shortShare: 0.5, shortSteps: 2, wantedSteps: 1, roomShare: 0 },
      onWarning: () => {},
    },
  }, machineOf(of));
  const results = await together(engine, of, plain);
  assertNothingHeld(engine);
  for (const [n, result] of results.entries()) {
    assertPlain(result, plain[n] as GenerateResult, `request ${n}`);
  }
  return { ...engine.counts };
}

/** @throws AssertionError where a result differs from plain decoding's, or an interrupted one is no beginning of it. */
export function assertPlain(found: GenerateResult, plain: GenerateResult, which: string): void {
  if (found.finishReason === "interrupt") {
    assert.deepEqual(found.outputIds, plain.outputIds.slice(0, found.outputIds.length), which);
    return;
  }
  const compared = ({ outputIds, text, finishReason, logprobs }: GenerateResult) => (
    { outputIds, text, finishReason, logprobs }
  );
  assert.deepEqual(compared(found), compared(plain), which);
}

/** Results of the case's requests, which begin, leave and ask for steps as it says. */
async function together(
  engine: LocalEngine,
  of: Case,
  plain: readonly GenerateResult[],
): Promise<GenerateResult[]> {
  const gates = plain.map(() => Promise.withResolvers<void>());
  gates[0]?.resolve();
  return await Promise.all(plain.map(async ({ outputIds }, n) => {
    if (of.arrival === "one by one") await gates[n]?.promise;
    const leaving = new AbortController();
    const leaves = of.arrival === "some leave" && n % 3 === 1;
    let rounds = 0;
    const request = {
      ...requestOf(engine, of, n),
      ...n % 3 === 1 ? {} : predictionOf(of.prediction, outputIds),
      ...of.ownSteps !== "no" && n % 3 === 0 ? { numSteps: 0 } : {},
      ...of.ownSteps === "0 and 1" && n % 3 === 2 ? { numSteps: 1 } : {},
      signal: leaving.signal,
    };
    const result = await resultOf(engine.submit(request), ({ kind }) => {
      if (kind !== "round") return;
      rounds++;
      if (rounds === 2) gates[n + 1]?.resolve();
      if (leaves && rounds === 2) leaving.abort();
    });
    gates[n + 1]?.resolve();
    return result;
  }));
}
