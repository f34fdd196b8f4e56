// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul_staged.wgsl, in the same order, for many rows, and for one row of
// packed integers where that was measured to be faster: while one stage of x is multiplied the next one and its weights
// are prefetched, x into the other of two buffers in workgroup memory (double buffering). One barrier a stage. The last
// stage of a range of k may be only partly filled: see lib/within. Imports are those of matmul_staged.wgsl.

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
  let step = $STAGEu / $BLOCK_VEC8Su;
  let vec8s = range * $BLOCK_VEC8Su;
  let mine = within(lane, range - 1u);
  let last = range - 1u - mine;

  //#for p in PAIRS
  let at$p = min(pair + $pu, half - 1u) * blocks + tile.z * range + mine;
  //#for r in ROWS
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#for j in STEPS
  var block_a$p_$j = load_block(at$p + within($ju * LANES, last));
  var block_b$p_$j = load_block(at$p + half * blocks + within($ju * LANES, last));
  //#endfor
  //#endfor
  //#for s in LOADS
  {
    let i = thread + $su * THREADS;
    let k = i % $STAGEu;
    let source = min(row + min(i / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
      (tile.z * vec8s + within(k, vec8s - 1u)) * 2u;
    let there = vec4<bool>(WHOLE || k < vec8s);
    if (i < $ROWSu * $STAGEu) {
      put_vec8(
        i / $STAGEu,
        k,
        select(vec4<f32>(0.0), x[source], there),
        select(vec4<f32>(0.0), x[source + 1u], there),
      );
    }
  }
  //#endfor
  var buffer = 0u; // first row of the buffer that is multiplied
  for (var first = 0u; first < range; first += step) {
    // After the last whole stage there is no next one, so it is loaded again.
    let next = select(select(first, first + step, first + step < range), min(first + step, range - step), WHOLE);
    workgroupBarrier();
    //#for s in LOADS
    let i$s = thread + $su * THREADS;
    let k$s = next * $BLOCK_VEC8Su + i$s % $STAGEu;
    let source$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
      (tile.z * vec8s + within(k$s, vec8s - 1u)) * 2u;
    let there$s = vec4<bool>(WHOLE || k$s < vec8s);
    let lo$s = select(vec4<f32>(0.0), x[source$s], there$s);
    let hi$s = select(vec4<f32>(0.0), x[source$s + 1u], there$s);
    //#endfor
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let k = $(j * BLOCK_VEC8S)u * LANES + $cu * packed_lanes() + packed;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      if ($cu == $BLOCK_VEC8Su - 1u) {
        //#for p in PAIRS
        block_a$p_$j = load_block(at$p + within(next + $ju * LANES, last));
        block_b$p_$j = load_block(at$p + half * blocks + within(next + $ju * LANES, last));
        //#endfor
      }
      //#for r in ROWS
      {
        let own = get_vec8(buffer + $ru, k);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
    //#endfor
    buffer = $ROWSu - buffer;
    //#for s in LOADS
    if (i$s < $ROWSu * $STAGEu) {
      put_vec8(buffer + i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
    }
    //#endfor
  }
  //#import lib/matmul_ending_statements
}
