import { PATH_CELLS } from "../../src/model/device_layout.ts";
import { hash32 } from "../../src/speculate/noise.ts";
import { shuffled } from "../gpu/numbers.ts";
import type { RowFields } from "./rows.ts";

/** Nodes of a draft tree in the pages of its slot. */
export interface Tree {
  readonly slot: number;
  /** Cells before the root. */
  readonly base: number;
  /** The nodes from the root to each, [nodes][depth + 1]. */
  readonly paths: readonly (readonly number[])[];
  /** Where each node lies, less `base`: in disorder and with gaps. */
  readonly offsets: readonly number[];
}

/** Cells from a tree's base on among which its nodes lie. */
export const TREE_CELLS = 48;

/** A repeatable tree of `nodes` nodes, with paths of up to PATH_CELLS of them. */
export function randomTree(slot: number, base: number, nodes: number, seed: number): Tree {
  const paths: number[][] = [[0]];
  for (let node = 1; node < nodes; node++) {
    // Mostly down, else paths stay short.
    const back = hash32(seed, 2, node) % 4 === 0 ? hash32(seed, 3, node) % node : 0;
    const parent = paths[node - 1 - back] ?? [];
    paths.push([...parent.length < PATH_CELLS ? parent : [0], node]);
  }
  return { slot, base, paths, offsets: shuffled(TREE_CELLS, seed).slice(0, nodes) };
}

/** The rows of a tree's nodes. */
export function treeRows({ slot, base, paths, offsets }: Tree): RowFields[] {
  return paths.map((nodes) => {
    const path = nodes.map((node) => offsets[node] ?? NaN);
    const [position, cell] = [base + nodes.length - 1, base + (path.at(-1) ?? NaN)];
    return { token: 0, position, slot, cell, base, live: 1, path };
  });
}

/** What the row of a node is where its path lies in order, in a slot of its own. */
export function chainOf(row: RowFields, slot: number): RowFields {
  const cell = row.position;
  return { ...row, slot, cell, base: cell + 1, path: [] };
}
