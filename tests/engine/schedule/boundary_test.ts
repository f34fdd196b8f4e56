// Whatever one request's code throws ends that request, and changes nothing of the others.
import assert from "node:assert/strict";
import type { HostDrafter } from "../../../src/draft/host_drafter.ts";
import {
  type EngineEvent,
  type GenerateRequest,
  resultOf,
} from "../../../src/engine/schedule/events.ts";
import { openSpeculation } from "../../../src/engine/schedule/speculation.ts";
import { asError } from "../../../src/errors.ts";
import type { Constraint } from "../../../src/grammar/constraint.ts";
import type { Grammar } from "../../../src/grammar/rules/grammar.ts";
import { fixed } from "../../../src/speculate/policies/static.ts";
import { chain, chains } from "../../../src/speculate/round_shape.ts";
import { NO_PROPOSAL } from "../../../src/speculate/trees.ts";
import { tokenAfter, VOCAB } from "../fake_runner.ts";
import { alone, assertNothingLeaked, openFake, request } from "../fake_engine.ts";

/** Code of a request that may throw. */
const PLACES = [
  ...["open grammar", "mask", "complete", "take", "fill", "pruned", "forced", "close grammar"],
  ...["propose", "learn", "close drafter", "sampling"],
  ...["callback: prefill", "callback: round", "callback: text", "callback: finish"],
  ...["callback: error", "async callback"],
] as const;
type Place = typeof PLACES[number];

const THROWN: readonly unknown[] = [
  new Error("broken"),
  new RangeError("far"),
  new URIError("URI malformed"),
  "a text",
  undefined,
  null,
  7,
  Symbol("none"),
  Object.create(null),
];

/** Throws at the `nth` call at this place. */
function thrower(place: Place, nth: number, thrown: unknown) {
  let calls = 0;
  const seen = { thrown: false };
  return {
    seen,
    at(here: Place): void {
      if (here !== place || ++calls !== nth) return;
      seen.thrown = true;
      throw thrown;
    },
  };
}

type At = (place: Place) => void;

/** Allows everything, and throws where it is to. */
function looseConstraint(at: At): Constraint {
  const all = new Uint32Array(Math.ceil(VOCAB / 32)).fill(0xffffffff);
  return {
    get mask() {
      at("mask");
      return all;
    },
    get complete() {
      at("complete");
      return false;
    },
    take: () => at("take"),
    forced() {
      at("forced");
      return NO_PROPOSAL;
    },
    pruned(proposal) {
      at("pruned");
      return proposal;
    },
    fill(_, into) {
      at("fill");
      into.fill(0xffffffff);
    },
    close: () => at("close grammar"),
  };
}

/** Proposes for the victim, whose prompt begins with 2, what comes next, every second time. */
function drafter(at: At): HostDrafter {
  return {
    name: "thrower",
    shapes: chains([1, 3, 5]),
    open: ([first]) => ({
      propose(ids) {
        if (first === 2) at("propose");
        const next = tokenAfter(ids);
        return ids.length % 3 === 0 || next >= VOCAB
          ? NO_PROPOSAL
          : { tokens: [next], parents: [0] };
      },
      learn: () => first === 2 && at("learn"),
      close: () => first === 2 && at("close drafter"),
    }),
  };
}

interface End {
  readonly events: readonly EngineEvent[];
  readonly ids: readonly number[];
}

const VICTIM = request({ promptIds: [2, 9, 9], ignoreEos: true, maxTokens: 25 });
const OTHERS = [[5, 6, 7], [9, 8, 7], [5, 6, 7, 8], [4, 4]].map((promptIds, n) =>
  request({ promptIds, ignoreEos: true, maxTokens: 20 + n, numSteps: n % 2 ? 0 : 3 })
);

/** Runs a victim among others. */
async function run(
  { at, host, constrained, batch }: {
    readonly at: At;
    readonly host: boolean;
    readonly constrained: boolean;
    readonly batch: number;
  },
): Promise<{ victim: End; others: End[] }> {
  const fake = openFake({
    capacity: { batch },
    drafter: host ? drafter(at) : undefined,
    grammars: {
      close: () => {},
      open: () => {
        at("open grammar");
        return Promise.resolve(looseConstraint(at));
      },
    },
  });
  const { setSampling } = fake.runner;
  fake.runner.setSampling = (sequence, ...of) => {
    if (sequence.ids[0] === 2) at("sampling");
    setSampling(sequence, ...of);
  };
  const submit = (asked: GenerateRequest, onEvent: (event: EngineEvent) => unknown): End => {
    const events: EngineEvent[] = [];
    const ids: number[] = [];
    fake.loop.submit(asked).listen((event) => {
      events.push(event);
      if (event.kind === "round") ids.push(...event.ids);
      return onEvent(event);
    });
    return { events, ids };
  };
  const others = OTHERS.slice(0, 2).map((asked) => submit(asked, () => {}));
  const grammar = { kind: "regex", pattern: "." } as unknown as Grammar;
  const victim = submit({ ...VICTIM, ...constrained && { grammar } }, (event) => {
    at(`callback: ${event.kind}` as Place);
    if (event.kind === "text") {
      try {
        at("async callback");
      } catch (error) {
        return Promise.reject(error);
      }
    }
  });
  others.push(...OTHERS.slice(2).map((asked) => submit(asked, () => {})));
  await fake.loop.idle();
  assertNothingLeaked(fake);
  // The engine goes on.
  const after = submit(OTHERS[0] as GenerateRequest, () => {});
  await fake.loop.idle();
  assert.deepEqual(after.ids, alone(OTHERS[0] as GenerateRequest));
  return { victim, others };
}

Deno.test("whatever one request's code throws, the others' texts are what they are alone", async () => {
  const threw = new Set<Place>();
  let runs = 0;

  async function check(place: Place, nth: number, of: Omit<Parameters<typeof run>[0], "at">) {
    const thrown = THROWN[runs % THROWN.length];
    const { at, seen } = thrower(place, nth, thrown);
    const { victim, others } = await run({ ...of, at });
    for (const [i, { events, ids }] of others.entries()) {
      assert.equal(events.at(-1)?.kind, "finish", `${i} at ${place}`);
      assert.deepEqual(ids, alone(OTHERS[i] as GenerateRequest));
    }
    const ends = victim.events.filter(({ kind }) => kind === "finish" || kind === "error");
    const last = victim.events.at(-1);
    assert.deepEqual(ends, [last], "one last event, and nothing after it");
    const whole = alone(VICTIM) ?? [];
    assert.deepEqual(victim.ids, whole.slice(0, victim.ids.length));
    if (!seen.thrown) return assert.equal(last?.kind, "finish");
    threw.add(place);
    if (place === "callback: finish") return;
    assert.ok(last?.kind === "error", place);
    // A grammar's errors are UsageErrors with their cause.
    if (thrown instanceof Error) assert.ok([last.error, last.error.cause].includes(thrown));
    else assert.ok(last.error.message.endsWith(asError(thrown).message), last.error.message);
  }

  for (const place of PLACES) {
    for (const nth of [1, 2, 5]) {
      for (const host of [false, true]) {
        for (const constrained of [false, true]) {
          await check(place, nth, { host, constrained, batch: [1, 2, 5][runs++ % 3] as number });
        }
      }
    }
  }
  // That one is called after an error only: it has a test of its own.
  assert.deepEqual(PLACES.filter((place) => !threw.has(place)), ["callback: error"]);
});

Deno.test("a callback that throws at its own error ends nobody else", async () => {
  const at = (place: Place) => {
    if (place === "take" || place === "callback: error") throw new Error(place);
  };
  const { victim, others } = await run({ at, host: false, constrained: true, batch: 5 });
  assert.equal(victim.events.at(-1)?.kind, "error");
  for (const { events } of others) assert.equal(events.at(-1)?.kind, "finish");
});

Deno.test("a detokenizer that throws ends the request that it decodes for", async () => {
  for (const nth of [1, 2, 5, 17, 40]) {
    let calls = 0;
    const fake = openFake({
      capacity: { batch: 2 },
      decode(ids) {
        if (++calls === nth) throw new RangeError("no text");
        return ids.map((id) => `<${id}>`).join("");
      },
    });
    const ends = await Promise.allSettled(
      OTHERS.map((asked) => resultOf(fake.loop.submit(asked))),
    );
    const failed = ends.filter((end) => end.status === "rejected");
    assert.deepEqual(failed.map(({ reason }) => reason.message), ["no text"]);
    for (const [i, end] of ends.entries()) {
      if (end.status === "fulfilled") {
        assert.deepEqual(end.value.outputIds, alone(OTHERS[i] as GenerateRequest));
      }
    }
    assertNothingLeaked(fake);
  }
});

Deno.test("policies and observers that throw end no request", async () => {
  const policy = fixed(chain(3));
  const broken = () => {
    throw Object.create(null);
  };
  for (const part of ["pick", "holds", "learn", "report"] as const) {
    const lines: string[] = [];
    const speculation = openSpeculation("broken", { ...policy, [part]: broken });
    const fake = openFake({
      speculation,
      onRound: broken,
      onWarning: (line) => lines.push(line),
    });
    const ids: number[] = [];
    fake.loop.submit(OTHERS[0] as GenerateRequest).listen((event) => {
      if (event.kind === "round") ids.push(...event.ids);
    });
    await fake.loop.idle();
    assert.deepEqual(ids, alone(OTHERS[0] as GenerateRequest));
    assert.deepEqual(lines.length, 1, "one warning of onRound");
    assert.ok(speculation.report);
  }
});

Deno.test("an engine closed inside a callback sends nothing after the error", async () => {
  const fake = openFake();
  const kinds: string[][] = [];
  for (const asked of OTHERS.slice(0, 3)) {
    const own: string[] = [];
    kinds.push(own);
    fake.loop.submit(asked).listen(({ kind }) => {
      own.push(kind);
      if (kind === "round" && kinds.flat().filter((one) => one === "round").length === 4) {
        fake.loop.close();
      }
    });
  }
  await fake.loop.idle();
  for (const own of kinds) {
    assert.equal(own.indexOf("error"), own.length - 1, own.join());
  }
});
