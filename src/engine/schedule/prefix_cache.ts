import { PAGE } from "../../model/device_layout.ts";
import { stateSpacing } from "../device/kept_states.ts";
import type { Runner } from "../device/runner.ts";
import type { PagePool } from "../device/pages.ts";
import type { OutputConfig } from "./output.ts";

/** What is cached of a sequence. */
export interface CachedPrefix {
  /** Pages, the first cells first: tokens 0 .. pages.length * PAGE are stored in them. */
  readonly pages: readonly number[];
  /**
   * How many of these tokens, from the first on, have draft keys and values stored too. The others were decoded without
   * the draft; their features are stored if the engine stores any.
   */
  readonly draftStored: number;
  /** Place of the state after these tokens, where the engine's layers have states. */
  readonly state?: number;
  /**
   * Number of leading tokens whose pages are cached although no state after them is kept. Once they are stored again,
   * their state is worth keeping, because other sequences may share this prefix. Absent if it is at most FEW_PAGES
   * pages longer than `pages`.
   */
  readonly branch?: number;
}

/** A sequence and where its keys and values are. */
export interface StoredSequence {
  /** All its tokens, also those not stored yet. */
  readonly ids: readonly number[];
  /** See `PrefixCache.match`. */
  readonly promptTokens?: number | undefined;
  /** Number of leading tokens of `ids` whose target keys and values are stored. */
  readonly stored: number;
  /** Number of leading tokens of these whose draft keys and values are stored too. */
  readonly draftStored: number;
  /** Pages the sequence holds, the first cells first; there may be more than `stored` needs. */
  readonly pages: readonly number[];
}

/**
 * Finds the pages of prompts that begin alike: a radix tree whose nodes are whole KV pages.
 *
 * A node's key is the tokens of its page and `lookahead` more; its page holds their keys and values, computed after the
 * tokens of its ancestors. `match` and `insert` make a sequence hold the pages of a whole path from the root, and a
 * sequence releases its last pages first. So a sequence that holds a node's page also holds those of its ancestors, and
 * in `PagePool.idle`, the pages that only the cache holds, descendants come before their ancestors: the first page
 * always is a leaf.
 *
 * A sequence writes target keys and values only behind its cached pages. Into the cached pages it may write draft keys
 * and values, which are the same for all sequences that share the page.
 */
export interface PrefixCache {
  /** Pages that only the cache holds: `evict` frees them all, one at a time. */
  readonly evictable: number;
  /** Pages cached. */
  readonly size: number;
  /**
   * The longest cached prefix of `ids` before its last token, whose logits must be computed. The pages are retained for
   * the caller, which releases them to the pool.
   *
   * @param promptTokens leading ids of a prompt, if kernels of their own store prompts: the same ids as an answer are
   * in other pages, because their keys and values have other bits. Default: all.
   */
  match(ids: readonly number[], promptTokens?: number): CachedPrefix;
  /** Leading tokens of `ids` that `match` would find if all of `others` were stored. */
  common(ids: readonly number[], others: readonly number[]): number;
  /**
   * Caches the whole pages of a sequence. If the same tokens are cached in another page, the sequence must use that
   * page: it is retained for the caller, and the caller's own page is released.
   *
   * @returns the sequence's pages from now on, as many as before.
   * @throws Error if there are fewer pages than `stored` needs.
   */
  insert(sequence: StoredSequence): number[];
  /**
   * Takes a place for the state after the first `length` of a sequence's tokens: a free one, or the one of the least
   * recently used prefix, which loses its state. Undefined if no states are kept, or all places are being written, or
   * these tokens are not cached, or their state is being written, or they have one, which then counts as used.
   */
  takePlace(
    sequence: Pick<StoredSequence, "ids" | "promptTokens">,
    length: number,
  ): number | undefined;
  /**
   * Records that the state at a taken place follows the first `length` of a sequence's tokens; 0: the place has no
   * state to keep.
   */
  putState(
    place: number,
    sequence: Pick<StoredSequence, "ids" | "promptTokens">,
    length: number,
  ): void;
  /** Frees the least recently used page that only the cache holds; a page counts as used until it is released. */
  evict(): boolean;
  /** Frees all that only the cache holds. */
  clear(): void;
  /** Called after `PagePool.move`: the contents of a page are in another one now. */
  move(from: number, to: number): void;
  /** The draft's keys and values of all pages are lost. */
  forgetDraft(): void;
}

export interface PrefixCacheOptions {
  /** Number of places for states: a prefix without a kept state is not found. Absent: prefixes need no state. */
  readonly states?: number | undefined;
  /** See `KeptStates.spaced`. */
  readonly spaced?: boolean | undefined;
  /**
   * Tokens after a page that its contents depend on. 1 with an EAGLE draft, whose entry for a cell
   * is made from the target's hidden row there and the next token.
   */
  readonly lookahead: 0 | 1;
  /**
   * Caches pages only where the draft's keys and values are stored too: for an engine that keeps no
   * features for the draft to catch up from. Without a draft, nothing would ever be cached.
   */
  readonly requireDraft: boolean;
}

/** An empty cache of pages of `pool`. */
export function prefixCache(pool: PagePool, options: PrefixCacheOptions): PrefixCache {
  return new PageTree(pool, options);
}

/** A prefix cache as this runner's drafts need it. */
export function cacheOf(
  { pool, draft, recurrent, states }: Pick<Runner, "pool" | "draft" | "recurrent" | "states">,
  algorithm?: OutputConfig["algorithm"],
): PrefixCache {
  // Pages do not hold the state that belongs to a prefix.
  if (recurrent && !states) return noPrefixCache();
  return prefixCache(pool, {
    states: states?.count,
    spaced: states?.spaced,
    // What a standalone draft stores of a token depends on no later one.
    lookahead: draft === "none" || algorithm === "STANDALONE" ? 0 : 1,
    requireDraft: draft === "always",
  });
}

/** Never caches anything. */
export function noPrefixCache(): PrefixCache {
  return {
    evictable: 0,
    size: 0,
    match: () => ({ pages: [], draftStored: 0 }),
    common: () => 0,
    insert: ({ pages }) => [...pages],
    takePlace: () => undefined,
    putState: () => {},
    evict: () => false,
    clear: () => {},
    move: () => {},
    forgetDraft: () => {},
  };
}

/** Up to this many pages are stored again rather than keeping one more state. */
const FEW_PAGES = 4;

type Nodes = Map<string, Node>;

interface Stored {
  page: number;
  /** Leading cells, 0 to PAGE, whose draft keys and values the page holds too. */
  drafted: number;
}

/** Where a state is, and whose it is. */
interface PlacedState {
  readonly place: number;
  readonly node: Node;
}

interface Node extends Stored {
  readonly key: string;
  /** The map that contains this node. */
  readonly siblings: Nodes;
  readonly children: Nodes;
}

class PageTree implements PrefixCache {
  readonly #pool: PagePool;
  readonly #options: PrefixCacheOptions;
  readonly #roots: Nodes = new Map();
  readonly #byPage = new Map<number, Node>();
  readonly #freePlaces: number[];
  /** By the last node of the prefix; the least recently used first. */
  readonly #states = new Map<Node, PlacedState>();
  /** Places that are being written, each with the last node of its prefix. */
  readonly #taken = new Map<number, Node>();

  constructor(pool: PagePool, options: PrefixCacheOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#freePlaces = Array.from({ length: options.states ?? 0 }, (_, place) => place);
  }

  get evictable(): number {
    return this.#pool.idle.size;
  }

  get size(): number {
    return this.#byPage.size;
  }

  match(ids: readonly number[], promptTokens?: number): CachedPrefix {
    const path: Node[] = [];
    for (let nodes = this.#roots; (path.length + 1) * PAGE < ids.length;) {
      const node = nodes.get(this.#key({ ids, promptTokens }, path.length));
      if (!node) break;
      path.push(node);
      nodes = node.children;
    }
    const found = path.length * PAGE;
    const state = this.#options.states === undefined ? undefined : this.#lastState(path);
    if (this.#options.states !== undefined && state === undefined) path.length = 0;
    const pages = path.map(({ page }) => page);
    this.#pool.retain(pages);
    const partial = path.findIndex(({ drafted }) => drafted < PAGE);
    const draftStored = partial < 0
      ? path.length * PAGE
      : partial * PAGE + (path[partial] as Node).drafted;
    return {
      pages,
      draftStored,
      ...state === undefined ? {} : { state },
      ...found > (path.length + FEW_PAGES) * PAGE ? { branch: found } : {},
    };
  }

  /** Cuts a path to its longest part that has a state, and returns the place of that state. */
  #lastState(path: Node[]): number | undefined {
    const last = path.findLastIndex((node) => this.#states.has(node));
    const found = this.#used(path[last]);
    if (found !== undefined) path.length = last + 1;
    return found;
  }

  /** The place of a node's state, which counts as used. */
  #used(node: Node | undefined): number | undefined {
    const found = node && this.#states.get(node);
    if (found === undefined) return undefined;
    this.#states.delete(found.node);
    this.#states.set(found.node, found);
    return found.place;
  }

  /** The node of the last of a sequence's first `length` tokens, a multiple of PAGE. */
  #nodeAt(
    sequence: Pick<StoredSequence, "ids" | "promptTokens">,
    length: number,
  ): Node | undefined {
    if (sequence.ids.length < length) return undefined;
    let [nodes, node]: [Map<string, Node>, Node | undefined] = [this.#roots, undefined];
    for (let i = 0; i < length / PAGE; i++) {
      node = nodes.get(this.#key(sequence, i));
      if (node === undefined) return undefined;
      nodes = node.children;
    }
    return node;
  }

  takePlace(
    sequence: Pick<StoredSequence, "ids" | "promptTokens">,
    length: number,
  ): number | undefined {
    const node = this.#nodeAt(sequence, length);
    if (node === undefined || this.#used(node) !== undefined) return undefined;
    if (this.#taken.values().some((one) => one === node)) return undefined;
    const place = this.#freePlaces.pop() ?? this.#leastUsedPlace();
    if (place !== undefined) this.#taken.set(place, node);
    return place;
  }

  /** The place of the least recently used prefix with a state, which loses it. */
  #leastUsedPlace(): number | undefined {
    const [oldest] = this.#states.values();
    if (oldest) this.#states.delete(oldest.node);
    return oldest?.place;
  }

  putState(
    place: number,
    sequence: Pick<StoredSequence, "ids" | "promptTokens">,
    length: number,
  ): void {
    this.#taken.delete(place);
    const node = this.#nodeAt(sequence, length);
    if (node === undefined || this.#states.has(node)) this.#freePlaces.push(place);
    else this.#states.set(node, { place, node });
  }

  common(ids: readonly number[], others: readonly number[]): number {
    const differs = ids.findIndex((id, i) => id !== others[i]);
    const alike = differs < 0 ? ids.length : differs;
    const { states, spaced } = this.#options;
    const whole = states === undefined || alike === others.length;
    // Without a state at its end, a common part of the prompts would not be found.
    if (!whole && !spaced) return 0;
    const unit = whole ? PAGE : stateSpacing(others.length);
    const found = Math.min(alike - this.#options.lookahead, ids.length - 1);
    return Math.max(0, Math.floor(found / unit)) * unit;
  }

  insert(sequence: StoredSequence): number[] {
    const { stored, draftStored, pages: own } = sequence;
    if (own.length * PAGE < stored) throw new Error(`${stored} tokens in ${own.length} pages`);
    const pages = [...own];
    let nodes = this.#roots;
    const count = this.#wholePages(sequence);
    for (const [i, page] of own.slice(0, count).entries()) {
      const drafted = Math.max(0, Math.min(PAGE, draftStored - i * PAGE));
      const node = this.#put(nodes, this.#key(sequence, i), { page, drafted });
      // The cached page is in use and lacks draft entries that this sequence has: it keeps its own pages from here on.
      if (node.drafted < drafted) break;
      if (node.page !== page) {
        this.#pool.retain([node.page]);
        pages[i] = node.page;
      }
      nodes = node.children;
    }
    this.#pool.release(own.filter((page, i) => page !== pages[i]));
    return pages;
  }

  evict(): boolean {
    const [page] = this.#pool.idle;
    if (page === undefined) return false;
    const node = this.#byPage.get(page) as Node;
    if (node.children.size > 0) throw new Error(`page ${page} was released before its successors`);
    node.siblings.delete(node.key);
    this.#drop(node);
    return true;
  }

  clear(): void {
    while (this.evict());
  }

  move(from: number, to: number): void {
    const node = this.#byPage.get(from);
    if (node === undefined) return;
    this.#byPage.delete(from);
    this.#byPage.set(to, node);
    node.page = to;
  }

  forgetDraft(): void {
    for (const node of this.#byPage.values()) node.drafted = 0;
  }

  /** The node with this key, added if new. The given page replaces an idle page that has fewer draft entries. */
  #put(siblings: Nodes, key: string, { page, drafted }: Stored): Node {
    const node = siblings.get(key);
    if (!node) {
      const added: Node = { key, siblings, children: new Map(), page, drafted };
      siblings.set(key, added);
      this.#keep(added);
      return added;
    }
    if (node.page === page) node.drafted = Math.max(node.drafted, drafted);
    // A page in use stays: its users may hold pages of descendants, and would not hold the new page above them.
    else if (drafted > node.drafted && this.#pool.idle.has(node.page)) {
      this.#drop(node);
      Object.assign(node, { page, drafted });
      this.#keep(node);
    }
    return node;
  }

  #keep(node: Node): void {
    this.#byPage.set(node.page, node);
    this.#pool.keep(node.page);
  }

  #drop(node: Node): void {
    this.#byPage.delete(node.page);
    this.#pool.drop(node.page);
    const state = this.#states.get(node);
    if (state === undefined) return;
    this.#states.delete(node);
    this.#freePlaces.push(state.place);
  }

  /** Pages of the sequence that can be cached. */
  #wholePages({ ids, stored, draftStored }: StoredSequence): number {
    const { lookahead, requireDraft } = this.#options;
    const known = ids.length - lookahead;
    return Math.floor(Math.min(stored, known, requireDraft ? draftStored : Infinity) / PAGE);
  }

  /** Tokens of page `i` and `lookahead` more, two characters each, and whether cells of the page are an answer's. */
  #key(
    { ids, promptTokens = Infinity }: Pick<StoredSequence, "ids" | "promptTokens">,
    i: number,
  ): string {
    const end = (i + 1) * PAGE;
    const halves: number[] = [];
    for (let at = i * PAGE; at < end + this.#options.lookahead; at++) {
      const id = ids[at] as number;
      halves.push(id & 0xffff, id >>> 16);
    }
    // The keys of its ancestors contain which kernels stored the cells before this page.
    if (end > promptTokens) halves.push(Math.max(0, promptTokens - i * PAGE));
    return String.fromCharCode(...halves);
  }
}
