/**
 * Random schedules on the device: requests of every kind that come, leave and ask for steps at any time, with prompts
 * in parts, grammars, preemption and depths that change, have the texts that plain decoding gives each alone.
 */
import assert from "node:assert/strict";
import { statically } from "../../src/engine/drafting.ts";
import { type GenerateResult, resultOf } from "../../src/engine/schedule/events.ts";
import type { PromptTarget } from "../../src/engine/device/models.ts";
import type { LocalHooks } from "../../src/engine/options.ts";
import { treeNamed } from "../../src/speculate/tree_shape.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { EXHAUSTIVE, SEED, SEED_VARIABLE } from "../exhaustive.ts";
import { assertNothingHeld } from "../engine/held.ts";
import { type LocalEngine, openEngine } from "../engine/open.ts";
import { restless } from "./policies.ts";
import { requestOf } from "./requests.ts";
import { assertPlain } from "./run.ts";

const SCHEDULES = EXHAUSTIVE ? 500 : 8;
/** Requests differ up to this number, by kind, prompt, length and stop texts. */
const REQUESTS = 140;
const KIND = { requests: "mixed", kernels: "software" } as const;
const CONTEXT = 112;
const PAGE = 16;

interface Engine {
  readonly name: string;
  readonly plan: NonNullable<LocalHooks["plan"]>;
  /** Steps that a request may ask for. */
  readonly steps: readonly (number | undefined)[];
  readonly limits: Parameters<typeof openEngine>[0]["limits"];
  /** Default: the same kernels for prompts as for rounds. */
  readonly promptTarget?: PromptTarget;
}

const ENGINES: readonly Engine[] = [
  {
    name: "chains, few pages, short forwards of prompts",
    plan: statically(3, [0, 1]),
    steps: [undefined, 0, 1, 3],
    // Two requests are admitted with five pages each, and they cannot both get a sixth.
    limits: { maxBatch: 4, maxKvTokens: 10 * PAGE, maxBatchedRows: 16 },
  },
  {
    name: "trees",
    plan: statically(treeNamed("5:4:8")),
    steps: [undefined, 0],
    limits: { maxBatch: 3 },
  },
  {
    name: "depths that change, few pages",
    plan: { policy: restless(3) },
    steps: [undefined, undefined, 0],
    limits: { maxBatch: 4, maxKvTokens: 10 * PAGE, roundsPerSync: "auto" },
  },
  {
    name: "prompts by other kernels, few pages",
    plan: statically(3, [0, 1]),
    steps: [undefined, 0, 1, 3],
    limits: { maxBatch: 4, maxKvTokens: 10 * PAGE, maxBatchedRows: 16 },
    promptTarget: (target) => ({ ...target, config: { ...target.config, rmsNormEps: 0.2 } }),
  },
];

/** @param promptTarget of the engine without drafts; an engine with drafts has its own. */
function open(engine: Engine | undefined, promptTarget?: PromptTarget): Promise<LocalEngine> {
  const ofPrompts = engine?.promptTarget ?? promptTarget;
  return openEngine({
    model: engine ? { algorithm: "EAGLE3" } : { draft: "none" },
    device: { costs: "off" },
    limits: {
      constrained: true,
      contextLength: CONTEXT,
      ...engine ? engine.limits : { prefixCache: false },
    },
    hooks: {
      onWarning: () => {},
      ...engine && { plan: engine.plan },
      ...ofPrompts && { promptTarget: ofPrompts },
    },
  });
}

/** What plain decoding gives of each request alone, decoded when first wanted. */
function plainResults(engine: LocalEngine): (n: number) => Promise<GenerateResult> {
  const results = new Map<number, Promise<GenerateResult>>();
  return (n) =>
    results.getOrInsertComputed(n, () => resultOf(engine.submit(requestOf(engine, KIND, n))));
}

/** Numbers below a limit that depend on the schedule alone. */
function drawsOf(schedule: number): (below: number) => number {
  let at = 0;
  return (below) => hash32(SEED, schedule, at++) % below;
}

/** Runs the requests of a schedule; each comes after so many rounds of others, and some leave. */
async function runSchedule(
  engine: LocalEngine,
  { steps }: Engine,
  draw: (below: number) => number,
): Promise<{ readonly n: number; readonly result: GenerateResult }[]> {
  let rounds = 0;
  const due: { readonly after: number; readonly begin: () => void }[] = [];
  const advance = (by: number) => {
    rounds += by;
    for (const { after, begin } of due) if (after <= rounds) begin();
  };
  const running = Array.from({ length: 2 + draw(5) }, async () => {
    const n = draw(REQUESTS);
    const numSteps = steps[draw(steps.length)];
    const leavesAfter = draw(6) === 0 ? draw(5) : Infinity;
    const gate = Promise.withResolvers<void>();
    due.push({ after: draw(12), begin: gate.resolve });
    await gate.promise;
    const leaving = new AbortController();
    let own = 0;
    const request = {
      ...requestOf(engine, KIND, n),
      ...numSteps !== undefined && { numSteps },
      signal: leaving.signal,
    };
    const result = await resultOf(engine.submit(request), ({ kind }) => {
      if (kind === "round") advance(1);
      if (kind === "round" && ++own > leavesAfter) leaving.abort();
    });
    // Where nobody is left to wait for, the next ones come.
    advance(12);
    return { n, result };
  });
  advance(0);
  // Someone has to be first.
  due[0]?.begin();
  return await Promise.all(running);
}

Deno.test(`random schedules change no text (${SEED_VARIABLE}=${SEED})`, async (t) => {
  using plain = await open(undefined);
  const same = plainResults(plain);
  const kinds = new Set<string>();
  for (const [i, of] of ENGINES.entries()) {
    await t.step(of.name, async () => {
      using engine = await open(of);
      using own = of.promptTarget && await open(undefined, of.promptTarget);
      const alone = own ? plainResults(own) : same;
      for (let schedule = i; schedule < SCHEDULES; schedule += ENGINES.length) {
        for (const { n, result } of await runSchedule(engine, of, drawsOf(schedule))) {
          assertPlain(result, await alone(n), `schedule ${schedule}, request ${n}`);
          kinds.add(result.finishReason);
        }
        assertNothingHeld(engine);
      }
      const few = of.limits?.maxKvTokens !== undefined;
      if (EXHAUSTIVE && few) assert.ok(engine.counts.preemptions > 0, "none was preempted");
    });
  }
  if (EXHAUSTIVE) assert.ok(kinds.has("interrupt") && kinds.has("length") && kinds.size > 2);
});
