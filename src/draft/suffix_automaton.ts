/** No state or edge. */
const NONE = -1;
export const ROOT = 0;

/**
 * A suffix automaton of several texts, built token by token (Blumer et al. 1985; for several texts, Mohri
 * et al. 2009). A state stands for all substrings that end at the same set of places; its `link` is the state
 * of their longest suffix that ends at more places. For n tokens it has at most 2 n states and 3 n edges.
 *
 * It counts how often a substring occurs and which tokens follow it, for substrings of up to `deepest`
 * tokens, so a new token updates at most that many states.
 */
export class SuffixAutomaton {
  readonly deepest: number;
  /** Tokens pushed so far, over all texts. */
  tokens = 0;
  states = 1;
  #edges = 0;
  /** State of the whole current text so far. */
  #last = ROOT;
  /** State of the text's longest suffix of up to `deepest` + 1 tokens, and its length. */
  #end = ROOT;
  #endLength = 0;
  // Arrays by state: length of the longest substring, link, occurrences, occurrences that a token follows,
  // the most frequent next token, the newest edge.
  #length = new Int32Array(64);
  #link = new Int32Array(64).fill(NONE);
  #count = new Int32Array(64);
  #going = new Int32Array(64);
  #best = new Int32Array(64).fill(NONE);
  #newest = new Int32Array(64).fill(NONE);
  // Arrays by edge: source state, token, target state, the next older edge of the same source.
  #from = new Int32Array(64);
  #token = new Int32Array(64);
  #to = new Int32Array(64);
  #older = new Int32Array(64);
  /** Hash table from state and token to edge + 1, with linear probing; 0 marks an empty cell. */
  #table = new Int32Array(128);

  /** @param deepest longest substring that is counted, tokens. */
  constructor(deepest: number) {
    this.deepest = deepest;
  }

  /** Size of the arrays in bytes. */
  get bytes(): number {
    return 24 * this.#length.length + 16 * this.#from.length + 4 * this.#table.length;
  }

  /** The next token begins another text. */
  begin(): void {
    this.#last = this.#end = ROOT;
    this.#endLength = 0;
  }

  /** Adds the next token of the current text. */
  push(token: number): void {
    this.tokens++;
    const before = this.#last;
    const known = this.next(before, token);
    this.#last = known >= 0 ? this.#exact(before, token, known) : this.#append(before, token);
    this.#tally(token);
  }

  /** The state that is reached from `state` by the token; negative if there is none. */
  next(state: number, token: number): number {
    const edge = this.#find(state, token);
    return edge < 0 ? NONE : this.#to[edge] as number;
  }

  /** The state of the longest suffix of the state's substrings that ends at more places. */
  link(state: number): number {
    return this.#link[state] as number;
  }

  /** Tokens of the longest substring of the state. */
  lengthOf(state: number): number {
    return this.#length[state] as number;
  }

  /** How often the state's substrings occur; counted only for substrings of up to `deepest` tokens. */
  occurrences(state: number): number {
    return this.#count[state] as number;
  }

  /** How many of these occurrences are followed by a token. */
  continued(state: number): number {
    return this.#going[state] as number;
  }

  /** The most frequent next token, the most recent one of equals; negative if nothing follows. */
  follower(state: number): number {
    return this.#best[state] as number;
  }

  /** State of the longest suffix of the current text, up to `deepest` tokens, that occurred before. */
  repeated(): number {
    return this.shortened(this.#link[this.#last] as number, this.deepest);
  }

  /** Follows links from `state` to the state that contains its suffix of `length` tokens, or all of it if shorter. */
  shortened(state: number, length: number): number {
    let at = Math.max(state, ROOT);
    while (at !== ROOT && this.lengthOf(this.link(at)) >= length) at = this.link(at);
    return at;
  }

  /** Adds and returns the state that follows `from` by a token which has not followed it before. */
  #append(from: number, token: number): number {
    const added = this.#state(this.lengthOf(from) + 1);
    let at = from;
    for (; at >= 0 && this.#find(at, token) < 0; at = this.link(at)) this.#edge(at, token, added);
    // Called before `#link` is written to, because it may replace the array.
    const link = at < 0 ? ROOT : this.#exact(at, token, this.next(at, token));
    this.#link[added] = link;
    return added;
  }

  /** The state whose longest substring is that of `from` plus the token; it is split off `to` if necessary. */
  #exact(from: number, token: number, to: number): number {
    const length = this.lengthOf(from) + 1;
    if (this.lengthOf(to) === length) return to;
    const split = this.#state(length);
    for (const field of [this.#link, this.#count, this.#going, this.#best]) {
      field[split] = field[to] as number;
    }
    for (let edge = this.#newest[to] as number; edge >= 0; edge = this.#older[edge] as number) {
      this.#edge(split, this.#token[edge] as number, this.#to[edge] as number);
    }
    this.#link[to] = split;
    for (let at = from; at >= 0; at = this.link(at)) {
      const edge = this.#find(at, token);
      if (this.#to[edge] !== to) break;
      this.#to[edge] = split;
    }
    return split;
  }

  /** Counts the suffixes that end with the token, and the token as the successor of the suffixes before it. */
  #tally(token: number): void {
    const before = this.shortened(this.#end, Math.min(this.#endLength, this.deepest));
    this.#endLength = Math.min(this.#endLength, this.deepest) + 1;
    this.#end = this.shortened(this.next(before, token), this.#endLength);
    for (let at = this.#end; at !== ROOT; at = this.link(at)) this.#add(this.#count, at);
    for (let at = before; at >= 0; at = this.link(at)) {
      this.#add(this.#going, at);
      const best = this.#best[at] as number;
      const most = best < 0 ? 0 : this.occurrences(this.next(at, best));
      if (this.occurrences(this.next(at, token)) >= most) this.#best[at] = token;
    }
  }

  #add(counts: Int32Array, state: number): void {
    counts[state] = (counts[state] as number) + 1;
  }

  #state(length: number): number {
    if (this.states === this.#length.length) {
      this.#length = grown(this.#length);
      this.#link = grown(this.#link);
      this.#count = grown(this.#count);
      this.#going = grown(this.#going);
      this.#best = grown(this.#best);
      this.#newest = grown(this.#newest);
    }
    const state = this.states++;
    this.#length[state] = length;
    this.#best[state] = this.#newest[state] = NONE;
    return state;
  }

  #edge(from: number, token: number, to: number): void {
    if (this.#edges === this.#from.length) {
      this.#from = grown(this.#from);
      this.#token = grown(this.#token);
      this.#to = grown(this.#to);
      this.#older = grown(this.#older);
      this.#table = new Int32Array(2 * this.#from.length);
      for (let edge = 0; edge < this.#edges; edge++) this.#enter(edge);
    }
    const edge = this.#edges++;
    this.#from[edge] = from;
    this.#token[edge] = token;
    this.#to[edge] = to;
    this.#older[edge] = this.#newest[from] as number;
    this.#newest[from] = edge;
    this.#enter(edge);
  }

  #enter(edge: number): void {
    let at = this.#place(this.#from[edge] as number, this.#token[edge] as number);
    while (this.#table[at] !== 0) at = (at + 1) & (this.#table.length - 1);
    this.#table[at] = edge + 1;
  }

  #find(state: number, token: number): number {
    const mask = this.#table.length - 1;
    for (let at = this.#place(state, token);; at = (at + 1) & mask) {
      const edge = (this.#table[at] as number) - 1;
      if (edge < 0 || (this.#from[edge] === state && this.#token[edge] === token)) return edge;
    }
  }

  #place(state: number, token: number): number {
    const hash = Math.imul(Math.imul(state, 0x9e3779b1) ^ token, 0x85ebca6b);
    return (hash ^ (hash >>> 15)) & (this.#table.length - 1);
  }
}

/** Twice as long. */
function grown(words: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  const longer = new Int32Array(2 * words.length);
  longer.set(words);
  return longer;
}
