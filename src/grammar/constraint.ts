import { UsageError } from "../errors.ts";
import { grammarFault } from "./fault.ts";
import type { Counter } from "./counts.ts";
import type { Position } from "./positions.ts";
import { chainOf, type Proposal } from "../speculate/trees.ts";
import { allows, type Matcher, tokensOf } from "./matcher.ts";

/** The grammar of one output, at the output's current position. */
export interface Constraint {
  /** The tokens that may come next, as `Matcher.mask` gives them. */
  readonly mask: Uint32Array;
  /** Whether the output may only end here. */
  readonly complete: boolean;
  /**
   * Advances by a token that became output.
   *
   * @throws UsageError if no token can follow and the output may not end, or if the matcher failed in any way.
   * Nothing else is thrown.
   */
  take(token: number): void;
  /**
   * Begins to find what may follow these tokens, which became output: `take` of each comes next, once the promise
   * resolves, or at once if there is none. Absent: `take` itself finds it.
   */
  advance?(tokens: readonly number[]): Promise<void> | undefined;
  /** Resolves when anything but `take` and `advance` answers soon; absent: now. */
  readonly busy?: Promise<void> | undefined;
  /** Whether masks took so long lately that drafts, which need several, are not worth it. */
  readonly slow?: boolean;
  /**
   * A chain of at most `depth` tokens for the text that the grammar forces next, spelled with the longest
   * tokens. It is only a guess if the masks cannot show what else the grammar allows.
   */
  forced(depth: number): Proposal;
  /** The proposal without tokens that the grammar does not allow and without their descendants. */
  pruned(proposal: Proposal): Proposal;
  /**
   * Writes the masks of a proposal's rows. A row that cannot be reached, or that is after the end, gets all ones.
   *
   * @param into u32 [rows, words of a mask], at least as many rows as the proposal has.
   */
  fill(proposal: Proposal, into: Uint32Array): void;
  close(): void;
}

/** If more tokens may follow, nothing is taken to be forced: comparing them all would take too long. */
const MAX_SPELLINGS = 1024;

/** Milliseconds after which no more drafts are looked at: others wait for this, and each may take a second. */
const DRAFTS_MS = 100;

/** A position of the output; made once and then found through the tokens that lead to it. */
interface State {
  readonly mask: Uint32Array;
  /** The position of the counter; undefined without one. */
  readonly position: Position | undefined;
  readonly next: Map<number, State>;
}

/**
 * The state of each row of a proposal; "end" after a token that ends the output, undefined for a token that is not
 * allowed or at which the matcher fails.
 */
type Walked = (State | "end" | undefined)[];

/**
 * @param of.bytes what each token adds to the text, by id.
 * @param of.eosTokenIds tokens that end the output.
 * @param of.counter counts characters, for a grammar that bounds their number.
 * @param of.ignoreEos masks out eosTokenIds, except where nothing else may follow.
 * @throws UsageError if no token may begin the output.
 */
export function openConstraint(
  matcher: Matcher,
  { bytes, eosTokenIds, ignoreEos, counter }: {
    readonly bytes: readonly Uint8Array[];
    readonly eosTokenIds: readonly number[];
    readonly ignoreEos: boolean;
    readonly counter?: Counter | undefined;
  },
): Constraint {
  /** Set when the matcher has failed: `take` of the next token throws it, which ends the output. */
  let failure: UsageError | undefined;
  let root = newState(counter?.start);
  if (isEmpty(root.mask)) throw nowhere();

  function attempt<T>(action: () => T, otherwise: T): T {
    if (failure) return otherwise;
    try {
      return action();
    } catch (error) {
      failure = grammarFault(error);
      return otherwise;
    }
  }

  function newState(position: Position | undefined): State {
    const all = matcher.mask();
    const mask = counter && position ? counter.restricted(all, position) : all;
    return { mask: ignoreEos ? withoutEnd(mask) : mask, position, next: new Map() };
  }

  /** The state after the token; the matcher must have accepted the token already. */
  function behind(from: State, token: number): State {
    return from.next.getOrInsertComputed(token, () => {
      const text = bytes[token] as Uint8Array;
      return newState(from.position && counter?.after(from.position, text));
    });
  }

  /** The mask without eosTokenIds, or the mask itself if only they may follow. */
  function withoutEnd(mask: Uint32Array): Uint32Array {
    const others = mask.slice();
    for (const id of eosTokenIds) others[id >>> 5] = cleared(others[id >>> 5] ?? 0, id);
    return isEmpty(others) ? mask : others;
  }

  /**
   * Runs `action` with matcher and state advanced by a draft; the matcher must be at `from`, and returns there. What
   * fails is left to `take`, which fails where the draft becomes output.
   */
  function within(from: State, token: number, action: (state: State) => void): void {
    step(matcher, token);
    try {
      action(behind(from, token));
    } catch {
      // There is no state behind the draft.
    } finally {
      attempt(() => matcher.rollback(1), undefined);
    }
  }

  /** @param end drafts that are not reached by this time are as if they were not allowed. */
  function walk({ tokens, parents }: Proposal, end = Infinity): Walked {
    const walked: Walked = [root];
    const below: number[][] = Array.from({ length: tokens.length + 1 }, () => []);
    for (const [i, parent] of parents.entries()) below[parent]?.push(i);
    const visit = (row: number, state: State) => {
      walked[row] = state;
      for (const i of below[row] ?? []) {
        const token = tokens[i] as number;
        if (!allows(state.mask, token) || performance.now() > end) continue;
        if (eosTokenIds.includes(token)) walked[i + 1] = "end";
        else within(state, token, (after) => visit(i + 1, after));
      }
    };
    visit(0, root);
    return walked;
  }

  /** The longest allowed token that is a prefix of, or has as prefix, each other allowed token. */
  function only(mask: Uint32Array): number | undefined {
    const tokens = tokensOf(mask, MAX_SPELLINGS) ?? [];
    if (tokens.some((token) => eosTokenIds.includes(token))) return undefined;
    const texts = tokens.map((token) => bytes[token] as Uint8Array);
    const [any] = texts;
    if (any === undefined) return undefined;
    const fits = (text: Uint8Array) => texts.every((other) => startAlike(text, other));
    const length = (at: number) => texts[at]?.length ?? 0;
    // A token that fits is also a prefix of `any`, or has it as prefix.
    const candidates = [...texts.keys()].filter((at) => startAlike(texts[at] as Uint8Array, any))
      .sort((a, b) => length(b) - length(a));
    const found = candidates.find((at) => fits(texts[at] as Uint8Array));
    return found === undefined ? undefined : tokens[found];
  }

  return {
    get mask() {
      return root.mask;
    },
    get complete() {
      const tokens = tokensOf(root.mask, eosTokenIds.length);
      return tokens !== undefined && tokens.every((token) => eosTokenIds.includes(token));
    },
    take(token) {
      if (eosTokenIds.includes(token)) return;
      attempt(() => {
        step(matcher, token);
        root = behind(root, token);
      }, undefined);
      if (!failure && eosTokenIds.length > 0 && isEmpty(root.mask)) failure = nowhere();
      if (failure) throw failure;
    },
    forced(depth) {
      const tokens: number[] = [];
      const end = performance.now() + DRAFTS_MS;
      const go = (state: State): void => {
        const goesOn = tokens.length < depth && performance.now() < end;
        const token = goesOn ? only(state.mask) : undefined;
        if (token === undefined) return;
        tokens.push(token);
        within(state, token, go);
      };
      attempt(() => go(root), undefined);
      return chainOf(tokens);
    },
    pruned(proposal) {
      const walked = attempt(() => walk(proposal, performance.now() + DRAFTS_MS), []);
      /** Maps rows of the proposal to rows of the pruned proposal. */
      const rows = new Map([[0, 0]]);
      const tokens: number[] = [];
      const parents: number[] = [];
      for (const [i, token] of proposal.tokens.entries()) {
        const parent = rows.get(proposal.parents[i] as number);
        if (parent === undefined || walked[i + 1] === undefined) continue;
        parents.push(parent);
        rows.set(i + 1, tokens.push(token));
      }
      return { tokens, parents };
    },
    fill(proposal, into) {
      const words = root.mask.length;
      into.fill(0xffffffff);
      for (const [row, state] of attempt(() => walk(proposal), []).entries()) {
        if (typeof state !== "object" || isEmpty(state.mask)) continue;
        into.set(state.mask, row * words);
      }
    },
    close: () => attempt(() => matcher.close(), undefined),
  };
}

/** @throws Error if the matcher refuses a token that its mask allows, which would be a bug. */
function step(matcher: Matcher, token: number): void {
  if (!matcher.accept(token)) throw new Error(`the grammar does not allow token ${token}`);
}

/** Whether one of the texts begins with the other. */
function startAlike(a: Uint8Array, b: Uint8Array): boolean {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function isEmpty(mask: Uint32Array): boolean {
  return mask.every((word) => word === 0);
}

function nowhere(): UsageError {
  return new UsageError(
    "Cannot constrain the output: the grammar has come to where no token may follow",
  );
}

function cleared(word: number, bit: number): number {
  return word & ~(1 << (bit & 31));
}
