/** Sequences that come, grow and go with few pages, against a list of what should be cached. */
import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "npm:fast-check@4.10.2";
import { type PagePool, pagePool } from "../../../src/engine/device/pages.ts";
import {
  type PrefixCache,
  prefixCache,
  type PrefixCacheOptions,
} from "../../../src/engine/schedule/prefix_cache.ts";

const PAGES = 16;

interface Sequence {
  readonly ids: number[];
  stored: number;
  draftStored: number;
  pages: number[];
}

/** What should be cached in a page. */
interface Cached {
  /** The tokens that the page depends on, from the first of all, each with a comma after it. */
  readonly path: string;
  readonly depth: number;
  page: number;
  /** Leading cells with the draft's part. */
  drafted: number;
}

/** What the runs came upon: the test would show little if it were nothing. */
const SEEN = {
  found: 0,
  adopted: 0,
  replaced: 0,
  kept: 0,
  evicted: 0,
  refused: 0,
  operations: 0,
};
type Seen = typeof SEEN;

const text = (ids: readonly number[]) => ids.map((id) => `${id},`).join("");

class World {
  readonly options: PrefixCacheOptions;
  readonly seen: Seen;
  readonly pool: PagePool = pagePool(PAGES);
  readonly cache: PrefixCache;
  readonly sequences: Sequence[] = [];
  #cached: Cached[] = [];
  /** What was written into whole pages: the tokens that the values depend on. */
  readonly #target = new Map<number, string>();
  readonly #draft = new Map<number, string>();
  /** Per page: when a sequence released it last. */
  readonly #released = new Map<number, number>();
  #now = 0;

  constructor(options: PrefixCacheOptions, seen: Seen) {
    this.options = options;
    this.seen = seen;
    this.cache = prefixCache(this.pool, options);
  }

  start(ids: readonly number[]): void {
    const most = Math.floor((ids.length - 1) / 16);
    const expected = this.#pathOf(ids, most);
    const whole = expected.findIndex(({ drafted }) => drafted < 16);
    const { pages, draftStored } = this.cache.match(ids);
    deepEqual(pages, expected.map(({ page }) => page));
    equal(draftStored, whole < 0 ? 16 * pages.length : 16 * whole + expected[whole]!.drafted);
    if (pages.length > 0) this.seen.found++;
    const sequence = { ids: [...ids], stored: 16 * pages.length, draftStored, pages: [...pages] };
    this.#contents(sequence);
    this.sequences.push(sequence);
  }

  /** Stores more tokens, of the prompt or else generated ones, as far as there are pages. */
  grow(sequence: Sequence, more: readonly number[], drafting: boolean): void {
    const { stored: from, ids, pages } = sequence;
    const to = from + more.length;
    while (pages.length * 16 < to) {
      const page = this.pool.take() ?? (this.evict() ? this.pool.take() : undefined);
      if (page === undefined) return;
      this.#target.delete(page);
      this.#draft.delete(page);
      pages.push(page);
    }
    ids.push(...more.slice(0, Math.max(0, to + 1 - ids.length)));
    for (let i = Math.floor(from / 16); i * 16 < to; i++) {
      equal(this.pool.references(pages[i]!), 1, "the target is written to a page of one's own");
      if ((i + 1) * 16 <= to) this.#target.set(pages[i]!, text(ids.slice(0, (i + 1) * 16)));
    }
    sequence.stored = to;
    if (drafting && sequence.draftStored === from) this.#storeDraft(sequence);
  }

  catchUp(sequence: Sequence): void {
    if (!this.options.requireDraft) this.#storeDraft(sequence);
  }

  insert(sequence: Sequence): void {
    const { ids, stored, draftStored, pages } = sequence;
    const known = Math.min(stored, ids.length - this.options.lookahead);
    const whole = Math.min(known, this.options.requireDraft ? draftStored : Infinity);
    const expected = [...pages];
    for (let i = 0; (i + 1) * 16 <= whole; i++) {
      const drafted = Math.max(0, Math.min(16, draftStored - i * 16));
      const node = this.#node(ids, i, pages[i]!);
      const better = node.page !== pages[i] && drafted > node.drafted;
      if (better && this.#holders(node.page) > 0) {
        this.seen.kept++;
        break;
      }
      if (node.page !== pages[i]) this.seen[better ? "replaced" : "adopted"]++;
      if (better) node.page = pages[i]!;
      if (node.page === pages[i]) node.drafted = Math.max(node.drafted, drafted);
      expected[i] = node.page;
    }
    sequence.pages = this.cache.insert(sequence);
    deepEqual(sequence.pages, expected);
    this.#contents(sequence);
  }

  finish(sequence: Sequence): void {
    this.#now++;
    for (const page of sequence.pages) this.#released.set(page, this.#now);
    this.sequences.splice(this.sequences.indexOf(sequence), 1);
    this.pool.release(sequence.pages);
  }

  /** The leaf released first is freed, and no other page. */
  evict(): boolean {
    const leaves = this.#cached.filter(({ page, path }) =>
      this.#holders(page) === 0 &&
      !this.#cached.some((other) => other.path !== path && other.path.startsWith(path))
    );
    const time = ({ page }: Cached) => this.#released.get(page)!;
    const [oldest] = leaves.toSorted((a, b) => time(a) - time(b) || b.depth - a.depth);
    equal(this.cache.evict(), oldest !== undefined);
    this.seen[oldest ? "evicted" : "refused"]++;
    this.#cached = this.#cached.filter((node) => node !== oldest);
    if (oldest) equal(this.pool.references(oldest.page), 0);
    return oldest !== undefined;
  }

  clear(): void {
    this.cache.clear();
    this.#cached = this.#cached.filter(({ page }) => this.#holders(page) > 0);
  }

  /** Counts everything anew. */
  check(): void {
    const pages = Array.from({ length: PAGES }, (_, page) => page);
    const cached = new Set(this.#cached.map(({ page }) => page));
    equal(cached.size, this.#cached.length);
    const references = pages.map((page) => this.#holders(page) + (cached.has(page) ? 1 : 0));
    deepEqual(pages.map((page) => this.pool.references(page)), references);
    equal(this.pool.free, references.filter((count) => count === 0).length);
    equal(this.cache.size, cached.size);
    const idle = [...cached].filter((page) => this.#holders(page) === 0);
    equal(this.cache.evictable, idle.length);
    this.seen.operations++;
  }

  #holders(page: number): number {
    return this.sequences.reduce((sum, { pages }) => sum + (pages.includes(page) ? 1 : 0), 0);
  }

  #find(ids: readonly number[], i: number): Cached | undefined {
    const path = text(ids.slice(0, (i + 1) * 16 + this.options.lookahead));
    return this.#cached.find((node) => node.path === path);
  }

  #node(ids: readonly number[], i: number, page: number): Cached {
    const path = text(ids.slice(0, (i + 1) * 16 + this.options.lookahead));
    const node = this.#find(ids, i) ?? { path, depth: i, page, drafted: 0 };
    if (!this.#cached.includes(node)) this.#cached.push(node);
    return node;
  }

  #pathOf(ids: readonly number[], most: number): Cached[] {
    const nodes = Array.from({ length: most }, (_, i) => this.#find(ids, i));
    const end = nodes.indexOf(undefined);
    return (end < 0 ? nodes : nodes.slice(0, end)) as Cached[];
  }

  #storeDraft(sequence: Sequence): void {
    const { ids, stored, pages, draftStored } = sequence;
    for (let i = Math.floor(draftStored / 16); (i + 1) * 16 <= stored; i++) {
      const path = text(ids.slice(0, (i + 1) * 16 + this.options.lookahead));
      const before = this.#draft.get(pages[i]!);
      ok(before === undefined || before === path, "those who share a page store the same");
      this.#draft.set(pages[i]!, path);
    }
    sequence.draftStored = stored;
  }

  /** The sequence's pages hold what it takes them to. */
  #contents({ ids, stored, draftStored, pages }: Sequence): void {
    for (let i = 0; (i + 1) * 16 <= stored; i++) {
      equal(this.#target.get(pages[i]!), text(ids.slice(0, (i + 1) * 16)));
      if ((i + 1) * 16 > draftStored) continue;
      const path = text(ids.slice(0, (i + 1) * 16 + this.options.lookahead));
      equal(this.#draft.get(pages[i]!), path);
    }
  }
}

/** Tokens in runs of 8 alike, the last run cut: many begin alike, and differ anywhere in a page. */
const tokens = (maxLength: number): fc.Arbitrary<number[]> =>
  fc.tuple(
    fc.array(fc.constantFrom(0, 0, 0, 0, 0, 1), { minLength: 1, maxLength, size: "max" }),
    fc.nat(7),
  ).map(([runs, cut]) => runs.flatMap((id) => Array<number>(8).fill(id)).slice(cut));

type Step =
  | { readonly kind: "start"; readonly ids: readonly number[] }
  | { readonly kind: "evict" }
  | { readonly kind: "clear" }
  /** Of the sequence at `which`, counted around. */
  | { readonly kind: "insert" | "finish" | "catchUp"; readonly which: number }
  | {
    readonly kind: "grow";
    readonly which: number;
    readonly more: readonly number[];
    readonly drafting: boolean;
  };

const which = fc.nat(7);
const kind = <K extends Step["kind"]>(kind: K) => fc.constant(kind);
const STEP: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: fc.record({ kind: kind("start"), ids: tokens(12) }) },
  {
    weight: 80,
    arbitrary: fc.record({ kind: kind("grow"), which, more: tokens(9), drafting: fc.boolean() }),
  },
  { weight: 60, arbitrary: fc.record({ kind: kind("insert"), which }) },
  { weight: 50, arbitrary: fc.record({ kind: kind("finish"), which }) },
  { weight: 10, arbitrary: fc.record({ kind: kind("catchUp"), which }) },
  { weight: 10, arbitrary: fc.record({ kind: kind("evict") }) },
  { weight: 1, arbitrary: fc.record({ kind: kind("clear") }) },
);

function take(world: World, step: Step): void {
  if (step.kind === "start") return world.start(step.ids);
  if (step.kind === "evict") return void world.evict();
  if (step.kind === "clear") return world.clear();
  const sequence = world.sequences[step.which % Math.max(1, world.sequences.length)];
  if (!sequence) return;
  if (step.kind === "grow") world.grow(sequence, step.more, step.drafting);
  else world[step.kind](sequence);
}

function play(world: World, steps: readonly Step[]): void {
  for (const step of steps) {
    take(world, step);
    world.check();
  }
  for (const sequence of [...world.sequences]) world.finish(sequence);
  world.check();
  equal(world.cache.evictable, world.cache.size);
  world.clear();
  world.check();
  equal(world.pool.free, PAGES);
}

const ALL: readonly PrefixCacheOptions[] = [
  { lookahead: 0, requireDraft: false },
  { lookahead: 1, requireDraft: false },
  { lookahead: 1, requireDraft: true },
];

for (const options of ALL) {
  const { lookahead, requireDraft } = options;
  Deno.test(`prefix cache: random sequences, lookahead ${lookahead}, draft required: ${requireDraft}`, () => {
    const seen = { ...SEEN };
    const steps = fc.array(STEP, { minLength: 30, maxLength: 100, size: "max" });
    const property = fc.property(steps, (steps) => play(new World(options, seen), steps));
    fc.assert(property, { seed: 20_260_713, numRuns: 300 });
    const never = requireDraft ? ["replaced", "kept"] : [];
    for (const [name, count] of Object.entries(seen)) {
      equal(count > 0, !never.includes(name), `${name}: ${count}`);
    }
  });
}
