// out[r, n] += sum_j shares[r, j] sum_k x[r, j, k] * W[e, n, k], e = experts[r, j]: the last matmul of the
// experts of few rows, times their shares, added to the residual stream.
//
// One workgroup per $OUTS outputs of a row; LANES lanes for each of its GROUPS jobs. The order of a
// job's sum is that of expert_matmul.wgsl, and the jobs are added to the stream one after the other as in
// norm/rms_norm.wgsl, with BIASED each with its expert's bias. $STEPS blocks of each of a lane's rows of W are loaded
// at a time; without WHOLE the last ones may be fewer.

//#import lib/matmul_sizes
//#import lib/weights_$weights
//#import lib/dot
//#import lib/expert_rows

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
@group(0) @binding(3) var<storage, read> experts: array<u32>; // [rows, GROUPS]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, GROUPS]
//#if BIASED
@group(0) @binding(5) var<storage, read> bias: array<f32>; // [experts, OUT_COLS]

var<workgroup> job_biases: array<f32, GROUPS * $OUTSu>;
//#endif

const QUADS = $QUADSu; // outputs by four

var<workgroup> lane_sums: array<vec4<f32>, $LANE_SUMS>; // of a group, and one of padding
var<workgroup> job_shares: array<f32, GROUPS>;
var<workgroup> job_sums: array<vec4<f32>, $JOB_SUMS>; // [GROUPS, QUADS]

@compute @workgroup_size(LANES * GROUPS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let group = thread / LANES;
  let job = tile.y * GROUPS + group;
  let rows = rows_of(experts[job]);
  let first = tile.x * $OUTSu;
  // Load now what is needed only at the end.
  let own_out = tile.y * OUT_COLS + first + min(thread, $OUTSu - 1u);
  let before = out[own_out];
  if (thread < GROUPS) {
    job_shares[thread] = shares[tile.y * GROUPS + thread];
  }
  //#if BIASED
  let bias_job = min(thread / $OUTSu, GROUPS - 1u);
  let bias_at = experts[tile.y * GROUPS + bias_job] * OUT_COLS + min(first + thread % $OUTSu, OUT_COLS - 1u);
  let own_bias = bias[bias_at];
  //#endif
  //#for o in OUTS
  let at$o = (rows.first + min(first + $ou, MATRIX_ROWS - 1u) * rows.step) * blocks;
  var sum$o = 0.0;
  //#endfor
  for (var i = 0u; i < blocks; i += $STEPSu * LANES) {
    //#for j in STEPS
    //#if PACKED_FEW
    let from$j = min(i + $ju * LANES + lane, blocks - 1u);
    let is_there$j = i + $ju * LANES + lane < blocks;
    let vec8$j = from$j / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + from$j % packed_lanes();
    //#else
    let from$j = min(i + $ju * LANES, blocks - LANES) + lane;
    let is_there$j = i + $ju * LANES < blocks;
    let vec8$j = (from$j - lane) * $BLOCK_VEC8Su + lane;
    //#endif
    //#for o in OUTS
    let block$o_$j = load_block(at$o + from$j);
    //#endfor
    //#endfor
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    let at$j_$c = (job * (COLS / 8u) + vec8$j + $cu * packed_lanes()) * 2u;
    let lo$j_$c = x[at$j_$c];
    let hi$j_$c = x[at$j_$c + 1u];
    //#endfor
    //#endfor
    //#for j in STEPS
    //#for c in BLOCK_VEC8S
    {
      let own = x_of(lo$j_$c, hi$j_$c);
      //#if WHOLE
      //#for o in OUTS
      sum$o = add_dot(sum$o, own, weights_$c(block$o_$j));
      //#endfor
      //#else
      if (is_there$j) {
        //#for o in OUTS
        sum$o = add_dot(sum$o, own, weights_$c(block$o_$j));
        //#endfor
      }
      //#endif
    }
    //#endfor
    //#endfor
  }
  //#for q in QUADS
  lane_sums[(group * QUADS + $qu) * (LANES + 1u) + lane] =
    vec4<f32>(sum$(4 * q), sum$(4 * q + 1), sum$(4 * q + 2), sum$(4 * q + 3));
  //#endfor
  //#if BIASED
  if (thread < GROUPS * $OUTSu) {
    job_biases[thread] = own_bias;
  }
  //#endif
  workgroupBarrier();
  for (var i = thread; i < GROUPS * QUADS; i += LANES * GROUPS) {
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //#for l in UNROLL
      sum += lane_sums[i * (LANES + 1u) + l + $lu];
      //#endfor
    }
    job_sums[i] = sum;
  }
  workgroupBarrier();
  if (thread < $OUTSu && first + thread < MATRIX_ROWS) {
    var sum = before;
    for (var j = 0u; j < GROUPS; j++) {
      //#if BIASED
      let y = job_sums[j * QUADS + thread / 4u][thread % 4u] + job_biases[j * $OUTSu + thread];
      //#else
      let y = job_sums[j * QUADS + thread / 4u][thread % 4u];
      //#endif
      sum = fma(job_shares[j], y, sum);
    }
    out[own_out] = sum;
  }
}
