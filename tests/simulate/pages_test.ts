import assert from "node:assert/strict";
import { countedPages } from "../../src/simulate/run/pages.ts";
import { newRequest } from "../../src/simulate/run/request.ts";
import { geometric } from "../../src/simulate/acceptance/model.ts";
import { chain } from "../../src/speculate/round_shape.ts";

/** Plain decoding keeps two cells beyond what is stored: a round's token and its row. */
const CAPACITY = {
  batch: 3,
  shapes: [chain(0)],
  prefillRows: 64,
  contextLength: Infinity,
  pages: 10,
};

function request(id: number, promptTokens: number, outputTokens = 100) {
  const coming = { seed: id, promptTokens, outputTokens, atMs: 0 };
  return newRequest(id, coming, geometric(0.5));
}

Deno.test("pages are counted by 16, with what a round adds", () => {
  const pages = countedPages(CAPACITY);
  const one = request(1, 30);
  assert.equal(pages.open(one), "opened");
  assert.deepEqual([one.pages, pages.available], [2, 8]);
  one.stored = 30;
  assert.deepEqual([1, 2, 3, 20].map((rounds) => pages.missing(one, rounds)), [0, 1, 1, 2]);
  assert.equal(pages.reserve(one, 3), true);
  assert.equal(pages.available, 7);
  pages.close(one);
  assert.deepEqual([one.pages, pages.available], [0, 10]);
});

Deno.test("what a preempted request stored is there again until others took the pages", () => {
  const pages = countedPages(CAPACITY);
  const one = request(1, 60);
  pages.open(one);
  one.stored = one.draftStored = 60;
  pages.close(one);
  assert.equal(pages.available, 10);
  assert.equal(pages.open(one), "opened");
  // Three whole pages of the four.
  assert.deepEqual([one.stored, one.draftStored, pages.available], [48, 48, 6]);
  one.stored = 60;
  pages.close(one);
  const other = request(2, 130);
  assert.equal(pages.open(other), "opened");
  assert.equal(pages.available, 1);
  pages.close(other);
  assert.equal(pages.open(one), "opened");
  assert.equal(one.stored, 16, "the last pages went first");
});

Deno.test("a request for which pages are short is left as it was, and its pages with it", () => {
  const pages = countedPages(CAPACITY);
  const [one, other] = [request(1, 100), request(2, 60)];
  pages.open(one);
  assert.equal(pages.open(other), "no pages");
  assert.deepEqual([other.pages, other.stored, pages.available], [0, 0, 3]);
  one.stored = 150;
  assert.equal(pages.reserve(one, 1), true);
  one.stored = 160;
  assert.equal(pages.reserve(one, 1), false);
  assert.equal(pages.available, 0);
});

Deno.test("slots end before pages do, and what never fits is told", () => {
  const pages = countedPages({ ...CAPACITY, batch: 1 });
  const one = request(1, 5);
  assert.equal(pages.open(one), "opened");
  assert.equal(pages.open(request(2, 5)), "no slot");
  assert.equal(pages.fits(request(3, 58, 100)), true);
  assert.equal(pages.fits(request(3, 59, 100)), false);
});
