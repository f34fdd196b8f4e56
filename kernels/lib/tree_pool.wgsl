// The pool of a sequence's tree: every candidate that its draft levels found. WIDTH at level 0, then WIDTH of
// each of the WIDTH nodes that the level before went on from (its frontier): candidate c of level l is at
//   c                                        l = 0
//   WIDTH + (l - 1) WIDTH WIDTH + c          l > 0; its parent is node c / WIDTH of the frontier of level l - 1
// The order of EAGLE-2 and SGLang (select_top_k_tokens).

override WIDTH: u32; // candidates that each node has

fn level_of(at: u32) -> u32 {
  return select(1u + (at - WIDTH) / (WIDTH * WIDTH), 0u, at < WIDTH);
}

// Which node of the frontier of the level before is the parent; level > 0.
fn parent_of(at: u32) -> u32 {
  return (at - WIDTH) % (WIDTH * WIDTH) / WIDTH;
}

// Where the candidates of a level begin.
fn pool_level(level: u32) -> u32 {
  return select(WIDTH + (level - 1u) * WIDTH * WIDTH, 0u, level == 0u);
}
