// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE vec8s of k at a time, and the weights of a stage are loaded before its x is
// there.
//
// COLS / 8 / SPLIT_K is a multiple of $STAGE, or the last stage of a range is only partly filled, see `within`.
// Imports are those of matmul.wgsl and lib/staged_x: how x is stored in workgroup memory and multiplied, by
// `fn put_vec8(row, e, lo, hi)`, `fn get_vec8(row, e)`, `fn add_dot(sum, x, w)` and `fn weights_<c>(block)`.

//#import lib/matmul_sizes
//#import lib/epilogue
//#import lib/matmul_outputs
//#import lib/weights_$weights
//#import lib/staged_x

// How the staged kernels read a range of k whose last stage is only partly filled ($WHOLE 0): no weights are read
// behind the range, and x is 0 there, which leaves every sum as it is. Whole stages need none of this.

const WHOLE = $WHOLEu == 1u;

// The index of block `i` of a row, counted from a lane's first, but at most that of the lane's last block of the range.
fn within(i: u32, last: u32) -> u32 {
  return select(min(i, last), i, WHOLE);
}

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
  //#endfor
  for (var first = 0u; first < range; first += $STAGEu / $BLOCK_VEC8Su) {
    //#for j in STEPS
    //#for p in PAIRS
    let block_a$p_$j = load_block(at$p + within(first + $ju * LANES, last));
    let block_b$p_$j = load_block(at$p + half * blocks + within(first + $ju * LANES, last));
    //#endfor
    //#endfor
    let left = (range - first) * $BLOCK_VEC8Su * 2u;
    workgroupBarrier();
    //#for s in LOADS
    {
      let i = thread + $su * THREADS;
      let r = i / ($PARTSu * $STAGEu);
      let part = i % ($PARTSu * $STAGEu);
      if (r < $ROWSu) {
        let at = min(row + r, rows - 1u) * (COLS / 4u) + (tile.z * range + first) * $BLOCK_VEC8Su * 2u;
        //#if dots == floats
        //#if !WHOLE
        // As below, but the last stage of a range is only partly filled: it has `left` vec4s.
        staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = select(
          vec4<f32>(0.0),
          x[at + min(part, left - 1u)],
          part < left,
        );
        //#else
        // x as floats is loaded by halves of vec8s, so that even one row keeps every invocation busy. A function for
        // this made one row of [6144, 4096] a tenth slower on an H200.
        staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = x[at + part];
        //#endif
        //#else
        //#if !WHOLE
        // As below, but the last stage of a range is only partly filled: it has `left` vec4s.
        let there = vec4<bool>(2u * part < left);
        let source = at + min(2u * part, left - 2u);
        put_vec8(
          r,
          part,
          select(vec4<f32>(0.0), x[source], there),
          select(vec4<f32>(0.0), x[source + 1u], there),
        );
        //#else
        // x that is rounded to integers is loaded a whole vec8 at a time.
        put_vec8(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
        //#endif
        //#endif
      }
    }
    //#endfor
    workgroupBarrier();
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let k = $(j * BLOCK_VEC8S)u * LANES + $cu * packed_lanes() + packed;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
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
  //#if ending == one_lane
  // Each invocation makes its outputs alone. They go through workgroup memory to a loop, because `epilogue` may be long
  // and software adapters would compile unrolled calls of it slowly.
  //#for p in PAIRS
  //#for r in ROWS
  sums[thread * $(PAIRS * ROWS)u + $(p * ROWS + r)u] = vec2<f32>(a$p_$r, b$p_$r);
  //#endfor
  //#endfor
  for (var i = 0u; i < $(PAIRS * ROWS)u; i++) {
    let c = pair + i / $ROWSu;
    let r = row + i % $ROWSu;
    if (c < half && r < rows) {
      epilogue(tile.z * rows + r, c, half, sums[thread * $(PAIRS * ROWS)u + i]);
    }
  }
  //#else if ending == pair
  // The lanes of a group share one pair of outputs.
  //#for t in SUM_TILES
  add_pairs(
    thread,
    row + $(t * SUMS)u,
    tile.z,
    tile.y * GROUPS,
    //#for s in SUMS
    vec2<f32>(a0_$(t * SUMS + s), b0_$(t * SUMS + s)),
    //#endfor
  );
  //#endfor
  //#else
  // The lanes of a group share several pairs: they are added for two pairs of $SUMS rows at a time.
  //#for h in PAIR_HALVES
  //#for t in SUM_TILES
  add_lanes(
    thread,
    row + $(t * SUMS)u,
    tile.z,
    tile.y * GROUPS * $PAIRSu + $(2 * h)u,
    $PAIRSu,
    //#for s in SUMS
    vec4<f32>(
      a$(2 * h)_$(t * SUMS + s),
      b$(2 * h)_$(t * SUMS + s),
      a$(2 * h + 1)_$(t * SUMS + s),
      b$(2 * h + 1)_$(t * SUMS + s),
    ),
    //#endfor
  );
  //#endfor
  //#endfor
  //#endif
}
