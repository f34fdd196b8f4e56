// How accept_commit.wgsl walks a tree: from a row to its first child whose token is the target's choice
// at the row. Children come after their parents, so one pass over the rows finds them all.

override KEPT: u32; // where the rows that were kept begin in `last`

var<private> path: array<u32, 64>; // rows on the walk; src/speculate/round_shape.ts: MOST_ROWS

fn walk(slot: u32, first: u32) -> u32 {
  let rows_drafted = min(ROWS - 1u, drafts[draft_count(slot)]);
  var accepted = 0u;
  path[0] = 0u;
  for (var i = 0u; i < rows_drafted && accepted < DEPTH; i++) {
    let at = path[accepted];
    if (drafts[draft_parent(slot, i)] == at && drafts[draft_token(slot, i)] == choice(first + at)) {
      accepted++;
      path[accepted] = i + 1u;
    }
  }
  for (var j = accepted + 1u; j <= DEPTH; j++) {
    path[j] = 0u;
  }
  return accepted;
}

fn row_at(j: u32) -> u32 {
  return path[j];
}

fn keep(at: u32, row: u32) {
  last[KEPT + at] = row;
}
