/** Most rows of one sequence that a round may verify, the root included: offsets in a `Row` are bytes. */
export const MAX_ROWS = 64;

/** Most draft levels: a row's path has a cell for each (src/model/device_layout.ts: PATH_CELLS). */
export const MAX_STEPS = 16;
/** The most children of a tree node. */
export const MAX_TOPK = 16;

/** The draft shape of each sequence in a round; programs, buffers and results are sized for it. */
export interface DraftShape {
  /** Draft levels: a round adds at most one token more than that. */
  readonly depth: number;
  /** Candidates a level, 1 for chains. */
  readonly width: number;
  /** Verify rows a sequence, the root included: depth + 1 for a chain. 1 to MAX_ROWS. */
  readonly rows: number;
}

/** The shape of one round. */
export interface RoundShape extends DraftShape {
  /** Sequences. */
  readonly batch: number;
}

/** Shape of a chain of `depth` drafts; 0 is plain decoding. */
export function chain(depth: number): DraftShape {
  return { depth, width: 1, rows: depth + 1 };
}

/** Shapes of chains, as `chain` makes them. */
export function chains(depths: readonly number[]): DraftShape[] {
  return depths.map(chain);
}

/** Whether row j of each sequence is j tokens after its root. */
export function isChain({ depth, width, rows }: DraftShape): boolean {
  return width === 1 && rows === depth + 1;
}

/** A tier as settings and statistics name it: the steps of a chain, `steps:topk:rows` of a tree. */
export function tierText(tier: DraftShape): string {
  const { depth, width, rows } = tier;
  return isChain(tier) ? String(depth) : `${depth}:${width}:${rows}`;
}

/** The same tier. */
export function sameTier(a: DraftShape, b: DraftShape): boolean {
  return a.depth === b.depth && a.width === b.width && a.rows === b.rows;
}

/** Each tier once, shallow ones and those of few rows first. */
export function distinctTiers(tiers: readonly DraftShape[]): DraftShape[] {
  return [...new Map(tiers.map((tier) => [tierText(tier), tier])).values()]
    .toSorted((a, b) => a.depth - b.depth || a.rows - b.rows || a.width - b.width);
}
