// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, on hardware: x
// passes through workgroup memory $STAGE vec8s of k at a time, and the weights of a stage are loaded before its x is
// there.
//
// COLS / 8 / SPLIT_K is a multiple of $STAGE, or the last stage of a range is only partly filled, see lib/within.
// Imports are those of matmul.wgsl and lib/staged_x: how x is stored in workgroup memory and multiplied, by
// `fn put_vec8(row, e, lo, hi)`, `fn get_vec8(row, e)`, `fn add_dot(sum, x, w)` and `fn weights_<c>(block)`.

//#import lib/matmul_sizes
//#import lib/epilogue
//#import lib/matmul_outputs
//#import lib/weights_$weights
//#import lib/staged_x
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
  //#import lib/matmul_ending_statements
}
