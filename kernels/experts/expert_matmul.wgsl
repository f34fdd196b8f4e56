// y[j, n] = sum_k x[j / ROW_JOBS, k] * W[e, n, k] of every job j, e its expert, f32 accumulation, for the
// experts of one shard of W.
//
// One workgroup per tile of at most $TILE jobs of one expert and range of outputs. The order of a
// sum is that of matmul.wgsl: lane l of LANES sums k = 8 * (l + j * LANES) .. + 7 in order of j, one k
// after the other; the lanes are added in order of l. So a job has the same bits whatever jobs
// share its tile. Outputs come in pairs (c, c + MATRIX_ROWS / 2): SwiGLU's gate and up are half of it apart.
//
// Tiles are those of lib/expert_jobs.wgsl; y goes to an epilogue that stores numbers (lib/epilogue.wgsl).

//#import lib/matmul_sizes
//#import lib/weights_$weights
//#import lib/dot
//#import lib/expert_jobs
//#import lib/epilogue
//#import lib/expert_rows

override FIRST_EXPERT: u32; // of the shard
override SHARD_EXPERTS: u32;
override ROW_JOBS: u32; // jobs that a row of x has

const FIRST = 0u;
const TILE = $TILEu;
const SUMS = TILE * $PAIRSu;

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [jobs, OUT_COLS]

var<workgroup> partial: array<vec2<f32>, LANES * GROUPS * SUMS>;

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let tile = place_of(workgroup.xy);
  let expert = expert_of(tile.x, thread) - FIRST_EXPERT;
  if (expert >= SHARD_EXPERTS) { // of another shard, or nobody's
    return;
  }
  //#if epilogue == clamped
  own_expert = expert + FIRST_EXPERT;
  //#endif
  // The invocation shares the outputs from pair `pair` on with the other lanes of its group.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
  //#if PACKED_FEW
  let packed = lane / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + lane % packed_lanes();
  //#endif
  //#for r in TILE
  let job$r = job_of(tile.x, $ru);
  let x$r = select(job$r, job_of(tile.x, 0u), job$r == NOTHING) / ROW_JOBS * (COLS / 8u);
  //#endfor

  let rows = rows_of(expert);
  let other = rows.pair * blocks; // from a block of an output to that of its pair
  //#for p in PAIRS
  let at$p = (rows.first + min(pair + $pu, half - 1u) * rows.step) * blocks;
  //#for r in TILE
  var a$p_$r = 0.0;
  var b$p_$r = 0.0;
  //#endfor
  //#endfor
  for (var i = lane; i < blocks; i += LANES) {
    //#for p in PAIRS
    let block_a$p = load_block(at$p + i);
    let block_b$p = load_block(at$p + other + i);
    //#endfor
    //#for c in BLOCK_VEC8S
    {
      //#if PACKED_FEW
      let k = (i - lane) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //#else
      let k = (i - lane) * $BLOCK_VEC8Su + $cu * LANES + lane;
      //#endif
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p);
      let wb$p = weights_$c(block_b$p);
      //#endfor
      //#for r in TILE
      {
        let at = (x$r + k) * 2u;
        let own = x_of(x[at], x[at + 1u]);
        //#for p in PAIRS
        a$p_$r = add_dot(a$p_$r, own, wa$p);
        b$p_$r = add_dot(b$p_$r, own, wb$p);
        //#endfor
      }
      //#endfor
    }
    //#endfor
  }

  if (LANES == 1u) {
    //#for p in PAIRS
    if (pair + $pu < half) {
      //#for r in TILE
      if (job$r != NOTHING) {
        epilogue(job$r, pair + $pu, half, vec2<f32>(a$p_$r, b$p_$r));
      }
      //#endfor
    }
    //#endfor
    return;
  }

  //#for p in PAIRS
  //#for r in TILE
  partial[thread * SUMS + $pu * TILE + $ru] = vec2<f32>(a$p_$r, b$p_$r);
  //#endfor
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < GROUPS * SUMS; i += LANES * GROUPS) {
    let group = i / SUMS;
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      sum += partial[(group * LANES + l) * SUMS + i % SUMS];
    }
    let c = (tile.y * GROUPS + group) * $PAIRSu + i % SUMS / TILE;
    let job = job_of(tile.x, i % TILE);
    if (c < half && job != NOTHING) {
      epilogue(job, c, half, sum);
    }
  }
}
