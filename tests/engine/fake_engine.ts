// The scheduler and the loop on a runner without a device.
import assert from "node:assert/strict";
import { type HostDrafter, pureDrafter } from "../../src/draft/host_drafter.ts";
import type { EngineSizes } from "../../src/engine/device/buffers.ts";
import type { DraftKind } from "../../src/engine/device/runner.ts";
import type { GenerateRequest } from "../../src/engine/schedule/events.ts";
import { type EngineLoop, engineLoop } from "../../src/engine/schedule/loop.ts";
import {
  cacheOf,
  noPrefixCache,
  type PrefixCache,
} from "../../src/engine/schedule/prefix_cache.ts";
import {
  openScheduler,
  type Scheduler,
  type SchedulerOptions,
} from "../../src/engine/schedule/scheduler.ts";
import { staticPlan } from "../../src/engine/schedule/speculation_choice.ts";
import { chain, chains } from "../../src/speculate/round_shape.ts";
import { GREEDY } from "../../src/speculate/sampling.ts";
import { FAKE_EOS, type FakeRunner, fakeRunner, tokenAfter, VOCAB } from "./fake_runner.ts";

export interface Fake {
  readonly runner: FakeRunner;
  readonly cache: PrefixCache;
  readonly scheduler: Scheduler;
  readonly loop: EngineLoop;
}

export function openFake(
  {
    capacity,
    draft,
    cached = true,
    roundsPerSync = 1,
    drafter,
    chunkRows,
    decode = (ids) => ids.map((id) => `<${id}>`).join(""),
    ...more
  }:
    & {
      readonly capacity?: Partial<EngineSizes>;
      readonly draft?: DraftKind;
      readonly cached?: boolean;
      readonly roundsPerSync?: number | "auto";
      readonly drafter?: HostDrafter | undefined;
      readonly chunkRows?: number;
      readonly decode?: (ids: readonly number[]) => string;
    }
    & Partial<
      Pick<
        SchedulerOptions,
        "clock" | "costs" | "grammars" | "onRound" | "onWarning" | "sloItlMs" | "speculation"
      >
    > = {},
): Fake {
  const runner = fakeRunner({
    batch: 3,
    shapes: [...chains([0, 1, 3, 5]), ...TREES.shapes],
    prefillRows: 16,
    promptRun: 4,
    contextLength: 128,
    pages: 30,
    ...capacity,
  }, draft);
  const cache = cached ? cacheOf(runner) : noPrefixCache();
  const outputs = {
    tokenizer: {
      vocabSize: VOCAB,
      bosToken: undefined,
      eosToken: undefined,
      idOf: () => undefined,
      encode: () => [],
      decode,
      isSkipped: (id: number) => id === FAKE_EOS,
    },
    name: "fake",
    eosTokenIds: [FAKE_EOS],
    vocabSize: VOCAB,
    algorithm: draft === "none" ? "NONE" : "EAGLE3",
    contextLength: runner.capacity.contextLength,
    tier: chain(3),
  } as const;
  const scheduler = openScheduler({
    runner,
    cache,
    outputs,
    speculation: staticPlan(chain(3)).speculation,
    roundsPerSync,
    drafter,
    ...chunkRows === undefined ? {} : { chunkRows },
    ...more,
  });
  return { runner, cache, scheduler, loop: engineLoop(scheduler) };
}

/** Proposes right and wrong tokens side by side, as many as the text says; at times none at all. */
export const TREES: HostDrafter = pureDrafter({
  name: "trees",
  shapes: [{ depth: 4, width: 2, rows: 8 }],
  propose(ids, { count, depth }) {
    const [tokens, parents]: [number[], number[]] = [[], []];
    const text = [...ids];
    let at = 0;
    for (let level = 0; level < Math.min(depth, ids.length % 6); level++) {
      const next = tokenAfter(text);
      if (next > VOCAB || tokens.length + 2 > count) break;
      const right = text.length % 7 === 0 ? next - 1 : next;
      const pair = text.length % 2 ? [right, 95] : [94, right];
      tokens.push(...pair);
      parents.push(at, at);
      at = tokens.length - (text.length % 2 ? 1 : 0);
      text.push(right);
    }
    return { tokens, parents };
  },
});

export function request(of: Partial<GenerateRequest>): GenerateRequest {
  return {
    promptIds: [5, 6, 7],
    sampling: GREEDY,
    maxTokens: 20,
    stop: [],
    ignoreEos: false,
    numSteps: 3,
    ...of,
  };
}

/** What the request gets when nobody is beside it; undefined where its logits break. */
export function alone(
  { promptIds, maxTokens, ignoreEos }: GenerateRequest,
  contextLength = 128,
): number[] | undefined {
  const ids = [...promptIds];
  while (ids.length < promptIds.length + Math.min(maxTokens, contextLength - promptIds.length)) {
    const token = tokenAfter(ids);
    if (token > VOCAB) return undefined;
    ids.push(token);
    if (token === FAKE_EOS && !ignoreEos) break;
  }
  return ids.slice(promptIds.length);
}

/** Every page is free or only cached, and a cleared cache gives all of them back. */
export function assertNothingLeaked({ runner: { pool }, cache }: Fake): void {
  assert.equal(pool.free + cache.evictable, pool.total);
  cache.clear();
  assert.equal(pool.free, pool.total);
}
