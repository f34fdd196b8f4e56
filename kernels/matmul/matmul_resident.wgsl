// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. $AHEAD blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is $STAGE, or the last blocks of some lanes are missing (`within`): then x is 0 there. Imports are
// those of matmul_staged.wgsl. What is done to x before `put_vec8` stores it in workgroup memory is a file each, by
// $prologue: nothing (rows), a norm (normed), a norm and a gate of its heads (gated), the sum of attention's splits
// (combined), or what other workgroups of the dispatch make (handoff).

//#import lib/matmul_sizes
//#import lib/epilogue
//#import lib/matmul_outputs
//#import lib/weights_$weights
//#import lib/staged_x
//#import lib/prologue_$prologue
//#import lib/within

const THREADS = $THREADSu; // LANES * GROUPS

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  //#if epilogue == bias
  own_range = tile.z;
  //#endif
  // The outputs of invocation `thread` of workgroup `tile`: with the other lanes of its group it shares the pairs from
  // `pair` on, for a tile of consecutive rows of x and one range of k.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  let range = blocks / SPLIT_K; // blocks of the range
  let row = tile.x * $ROWSu; // first of the tile
  let rows = arrayLength(&x) / (COLS / 4u);
  // The lane's first vec8 of a range.
  let packed = lane / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + lane % packed_lanes();
  let mine = within(lane, range - 1u);
  let last = range - 1u - mine;

  //#for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range + mine;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#for j in AHEAD
  var block_a$p_$j = load_block(at$p + within($ju * LANES, last));
  var block_b$p_$j = load_block(at$p + half * blocks + within($ju * LANES, last));
  //#endfor
  //#endfor
  //#import lib/prologue_statements_$prologue
  workgroupBarrier();
  for (var first = 0u; first < range; first += $AHEADu * LANES) {
    //#for j in AHEAD
    //#for c in BLOCK_VEC8S
    {
      let k = (first + $ju * LANES) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      //#if TURNS
      if ($cu == $BLOCK_VEC8Su - 1u) {
        let after = first + ($AHEADu + $ju) * LANES;
        let next = select(within(after, last), min(after, range - LANES), WHOLE);
        //#for p in PAIRS
        block_a$p_$j = load_block(at$p + next);
        block_b$p_$j = load_block(at$p + half * blocks + next);
        //#endfor
      }
      //#endif
      //#for r in ROWS
      {
        let own = get_vec8($ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
    //#endfor
  }
  //#import lib/matmul_ending_statements
}
