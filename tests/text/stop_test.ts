import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { UsageError } from "../../src/errors.ts";
import { stopScanner } from "../../src/text/stop.ts";

const SEED = { seed: 20260305, numRuns: 2000 };

/** The text that the scanner lets through for `pieces`, and the stop that ended it. */
function scan(
  stops: readonly string[],
  pieces: readonly string[],
): [text: string, stop: string | undefined] {
  const scanner = stopScanner(stops);
  const pushed = pieces.map((piece) => scanner.push(piece));
  const text = pushed.map((each) => each.text).join("") + scanner.end();
  return [text, pushed.at(-1)?.stop];
}

/** By definition: the first place where a stop is complete, and the longest stop that ends there. */
function naive(
  stops: readonly string[],
  text: string,
): [text: string, stop: string | undefined] {
  for (let end = 1; end <= text.length; end++) {
    const seen = text.slice(0, end);
    const [longest] = stops.filter((stop) => seen.endsWith(stop))
      .toSorted((a, b) => b.length - a.length);
    if (longest !== undefined) return [seen.slice(0, end - longest.length), longest];
  }
  return [text, undefined];
}

// With two letters, stops often overlap with themselves and with one another.
const letters = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom("a", "b"), minLength, maxLength });
const stops = fc.array(letters(1, 6), { maxLength: 4 });
const pieces = fc.array(letters(0, 4), { maxLength: 12, size: "max" });

Deno.test("stop: agrees with a naive search, however the text is cut", () => {
  fc.assert(
    fc.property(stops, pieces, (stops, pieces) => {
      assert.deepEqual(scan(stops, pieces), naive(stops, pieces.join("")));
    }),
    SEED,
  );
});

Deno.test("stop: holds back exactly the longest tail that may begin a stop", () => {
  fc.assert(
    fc.property(stops, pieces, (stops, pieces) => {
      const scanner = stopScanner(stops);
      let [whole, shown] = ["", ""];
      for (const piece of pieces) {
        whole += piece;
        const { text, stop } = scanner.push(piece);
        shown += text;
        if (stop !== undefined) return;
        const tails = Array.from(whole, (_, at) => whole.slice(at)).concat("");
        const open = tails.find((tail) => stops.some((stop) => stop.startsWith(tail))) ?? "";
        assert.equal(shown, whole.slice(0, whole.length - open.length));
      }
    }),
    SEED,
  );
});

Deno.test("stop: a stop may span pieces, and nothing comes after it", () => {
  const scanner = stopScanner(["\n\nUser:", "END"]);
  assert.deepEqual(scanner.push("Hello\n"), { text: "Hello", stop: undefined });
  assert.deepEqual(scanner.push("\nUs"), { text: "", stop: undefined });
  assert.deepEqual(scanner.push("er: hi"), { text: "", stop: "\n\nUser:" });
  assert.deepEqual(scanner.push("more"), { text: "", stop: "\n\nUser:" });
  assert.equal(scanner.end(), "");
});

Deno.test("stop: a held tail comes out at the end or when it does not go on", () => {
  const scanner = stopScanner(["END"]);
  assert.deepEqual(scanner.push("the EN"), { text: "the ", stop: undefined });
  assert.deepEqual(scanner.push("E"), { text: "EN", stop: undefined });
  assert.equal(scanner.end(), "E");
  assert.deepEqual(scan([], ["as ", "it is"]), ["as it is", undefined]);
});

Deno.test("stop: an empty stop text is refused", () => {
  assert.throws(() => stopScanner(["a", ""]), UsageError);
});
