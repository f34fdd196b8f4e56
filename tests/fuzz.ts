/** What every malformed input must come to, and ways to make one from a good one. */
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../src/errors.ts";

/** Longest message: a person reads it. */
const LONGEST = 1000;

/** Whether it ran. It may also fail with a UsageError of one line; any other error is thrown. */
export function holds(run: () => unknown): boolean {
  try {
    run();
    return true;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    assert.ok(!/[\n\r]/.test(error.message), JSON.stringify(error.message));
    assert.ok(error.message.length < LONGEST, error.message);
    assert.match(error.message, /^Cannot /);
    return false;
  }
}

/** How many inputs were taken and how many refused. */
export interface Outcomes {
  taken: number;
  refused: number;
}

/** Fails where inputs were all taken or all refused: then they would test little. */
export function some({ taken, refused }: Outcomes): void {
  assert.ok(taken > 0 && refused > 0, `${taken} inputs were taken, ${refused} refused`);
}

/** Counts what `holds` says of `numRuns` values, the same ones each time. */
export function always<T>(
  values: fc.Arbitrary<T>,
  attempt: (value: T) => boolean,
  numRuns: number,
): Outcomes {
  const outcomes = { taken: 0, refused: 0 };
  const property = fc.property(values, (value) => {
    outcomes[attempt(value) ? "taken" : "refused"]++;
  });
  fc.assert(property, { numRuns, seed: 20_251_121 });
  return outcomes;
}

/** Values that no config should have, or not there. */
export const absurd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(
    null,
    undefined,
    true,
    false,
    "",
    "x",
    "__proto__",
    "16",
    "\n\r\u0000\u2028",
    [],
    {},
    [null],
    [[]],
    { a: 1 },
    { rope_type: "llama3" },
    { rope_type: "yarn", factor: 0 },
    { rope_theta: 1e300, rope_type: "default" },
    nestedArray(5000),
    "long ".repeat(1000),
  ),
  fc.constantFrom(0, -1, -0, 1, 2, 3, 7, 8, 12, 24, 0.5, 1e-300, 1e300, 2 ** 31, 2 ** 53, 2 ** 63),
  fc.double(),
  fc.integer(),
  fc.string(),
  fc.jsonValue(),
);

/** `[[[...]]]`, as deep as JSON.parse makes it without complaint. */
function nestedArray(depth: number): unknown {
  return JSON.parse("[".repeat(depth) + "]".repeat(depth));
}

/** An object with up to three of its keys, or of `more`, changed to something absurd. */
export function spoiled(
  good: Readonly<Record<string, unknown>>,
  more: readonly string[] = [],
): fc.Arbitrary<Record<string, unknown>> {
  const keys = [...Object.keys(good), ...more];
  const change = fc.tuple(fc.constantFrom(...keys), absurd);
  return fc.array(change, { minLength: 1, maxLength: 3 })
    .map((changes) => ({ ...good, ...Object.fromEntries(changes) }));
}

/** Bytes with a few of them changed, some cut off, or some put in. */
export function corrupted(good: Uint8Array): fc.Arbitrary<Uint8Array> {
  const at = fc.nat({ max: Math.max(0, good.length - 1) });
  const byte = fc.oneof(fc.constantFrom(0, 1, 0x7f, 0x80, 0xff), fc.integer({ min: 0, max: 255 }));
  const flips = fc.array(fc.tuple(at, byte), { minLength: 1, maxLength: 4 }).map((changes) => {
    const bytes = new Uint8Array(good);
    for (const [place, value] of changes) bytes[place] = value;
    return bytes;
  });
  const cuts = fc.tuple(at, at).map(([a, b]) => joined(good, Math.min(a, b), Math.max(a, b), []));
  const more = fc.tuple(at, fc.uint8Array({ minLength: 1, maxLength: 9 }));
  const inserts = more.map(([place, bytes]) => joined(good, place, place, bytes));
  return fc.oneof({ weight: 3, arbitrary: flips }, cuts, inserts);
}

function joined(
  bytes: Uint8Array,
  from: number,
  to: number,
  between: ArrayLike<number>,
): Uint8Array {
  return Uint8Array.from([
    ...bytes.subarray(0, from),
    ...Array.from(between),
    ...bytes.subarray(to),
  ]);
}
