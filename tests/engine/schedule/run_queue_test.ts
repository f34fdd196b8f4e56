// Admission by itself, with a budget that only counts.
import assert from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import {
  type KvAllocator,
  openRunQueue,
  promptBudget,
  type QueuedRequest,
} from "../../../src/engine/schedule/run_queue.ts";

interface Counted extends QueuedRequest {
  readonly name: string;
  /** Pages of its prompt, and of each round. */
  readonly needs: number;
  held: number;
  rounds: number;
}

function request(name: string, needs: number): Counted {
  return { name, needs, held: 0, rounds: 0, decoding: false };
}

/** A request has its prompt's pages and one for each round it ran or reserves. */
function counting(slots: number, total: number): KvAllocator<Counted> & { free(): number } {
  let free = total;
  let open = 0;
  const missing = ({ needs, rounds, held }: Counted, ahead: number) =>
    Math.max(0, needs + rounds + ahead - held);
  const take = (one: Counted, ahead: number) => {
    const lacks = missing(one, ahead);
    if (lacks > free) return false;
    free -= lacks;
    one.held += lacks;
    return true;
  };
  return {
    slots,
    get available() {
      return free;
    },
    free: () => free,
    awaits: ({ name }, other) => name === "b" && other.name === "a",
    missing,
    reserve: take,
    open(one) {
      assert.ok(open < slots, "the prefix cache is matched in vain");
      if (!take(one, 0)) return "no pages";
      open++;
      return "opened";
    },
    close(one) {
      free += one.held;
      one.held = 0;
      open--;
    },
  };
}

Deno.test("forwards of prompts have half of the rows while others decode, 256 at least where there are more", () => {
  const [waiting, decoding] = [{ decoding: false }, { decoding: true }];
  for (const [most, half] of [[64, 64], [256, 256], [300, 256], [512, 256], [1024, 512]] as const) {
    assert.equal(promptBudget(most, [waiting]), most);
    assert.equal(promptBudget(most, [waiting, decoding]), half);
  }
});

const names = (requests: readonly Counted[]) => requests.map(({ name }) => name).join("");

Deno.test("requests are admitted in order while there are slots; one whose prefix is being stored waits, and those behind it", () => {
  const queue = openRunQueue(counting(3, 100));
  for (const name of "abcd") queue.enqueue(request(name, 1));
  const first = queue.admit();
  assert.equal(first?.name, "a");
  assert.equal(queue.admit(), undefined, "its prefix is being stored");
  (first as Counted).decoding = true;
  assert.equal(queue.admit()?.name, "b");
  assert.equal(queue.admit()?.name, "c", "b stores nothing that c waits for");
  assert.equal(queue.admit(), undefined, "no slot");
  assert.deepEqual([names(queue.running), names(queue.waiting), queue.waits], ["abc", "d", 0]);
});

Deno.test("the youngest gives its pages back, waits first in line, and is counted", () => {
  const budget = counting(3, 8);
  const queue = openRunQueue(budget);
  for (const name of "abcd") queue.enqueue(request(name, 2));
  for (let one = queue.admit(); one; one = queue.admit()) one.decoding = true;
  assert.equal(names(queue.running), "abc");
  assert.equal(names(queue.grow()), "ab", "two pages are free, three are wanted");
  assert.deepEqual([names(queue.waiting), queue.preemptions, budget.free()], ["cd", 1, 2]);
  // It could have its prompt's two pages, which are there.
  assert.equal(queue.admit()?.name, "c");
});

Deno.test("a request that is short of pages waits, and nothing is reserved ahead meanwhile", () => {
  const queue = openRunQueue(counting(3, 8));
  queue.enqueue(request("a", 2));
  queue.enqueue(request("b", 7));
  (queue.admit() as Counted).decoding = true;
  assert.equal(queue.admit(), undefined);
  assert.equal(queue.waits, 1);
  const ahead = { most: 4, numSteps: 0, left: [9] };
  assert.equal(queue.reserveAhead(queue.grow(), ahead), 1);
});

Deno.test("rounds ahead leave half of the available pages, and end with the last of the tokens", () => {
  const budget = counting(1, 12);
  const queue = openRunQueue(budget);
  queue.enqueue(request("a", 2));
  (queue.admit() as Counted).decoding = true;
  const grown = queue.grow();
  assert.equal(budget.free(), 9);
  const ahead = { most: 8, numSteps: 1, left: [100] };
  // One round is reserved: four further pages of nine.
  assert.equal(queue.reserveAhead(grown, ahead), 5);
  assert.equal(budget.free(), 5);
  assert.equal(queue.reserveAhead(grown, { ...ahead, left: [3] }), 2);
});

Deno.test("pages that may not be given while a group is unread are given before, and no rounds without them", () => {
  const budget = counting(1, 500);
  const queue = openRunQueue(budget);
  queue.enqueue(request("a", 2));
  (queue.admit() as Counted).decoding = true;
  const grown = queue.grow();
  const ahead = { most: 1, numSteps: 0, left: [100], early: true };
  assert.equal(queue.reserveAhead(grown, ahead), 1);
  // Of its prompt, and of 32 rounds.
  assert.equal(budget.free(), 500 - 34);
  assert.equal(queue.reserveAhead(grown, { ...ahead, most: 8, unread: 30 }), 2);
  assert.equal(queue.reserveAhead(grown, { ...ahead, unread: 32 }), 0);
  assert.equal(budget.free(), 500 - 34);
});

Deno.test("whatever comes, no page leaks and the order of admission is kept", () => {
  const requests = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 6 })),
    {
      minLength: 1,
      maxLength: 12,
    },
  );
  fc.assert(fc.property(requests, fc.integer({ min: 1, max: 4 }), (given, slots) => {
    const budget = counting(slots, 12);
    const queue = openRunQueue(budget);
    const rounds = new Map<Counted, number>();
    for (const [i, [needs, count]] of given.entries()) {
      const one = request(String.fromCharCode(97 + i), needs);
      rounds.set(one, count);
      queue.enqueue(one);
    }
    let steps = 0;
    while (queue.waiting.length + queue.running.length > 0) {
      assert.ok(steps++ < 1000, "it goes on for ever");
      const admitted = queue.admit();
      if (admitted) admitted.decoding = true;
      for (const one of queue.grow()) {
        assert.ok(one.held >= one.needs + one.rounds + 1);
        one.rounds++;
        if (one.rounds < (rounds.get(one) as number)) continue;
        assert.ok(queue.remove(one));
        budget.close(one);
      }
      const held = queue.running.reduce((sum, { held }) => sum + held, 0);
      assert.equal(budget.free() + held, 12);
      assert.ok(queue.running.length <= slots);
    }
    assert.equal(budget.free(), 12);
  }));
});
