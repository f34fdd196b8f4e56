// out[r, n] += sum_j shares[r, j] sum_k x[r, j, k] * W[e, n, k], e = experts[r, j], as expert_sums.wgsl, in the same
// order, for matrices whose lanes have many blocks: x of all jobs of a row is brought to workgroup memory once,
// rounded once where integers are multiplied, and each block of weights is asked for as soon as the one in its place
// is multiplied.
//
// One workgroup per SETS * $OUTS outputs of a row; a set has LANES lanes for each of its GROUPS jobs, $OUTS outputs
// and $STEPS blocks of each of a lane's rows of W on their way; a lane's blocks are a multiple of $STEPS where
// $WHOLE is 1. Slots:
//   weights: `PackedBlock`, `fn load_block(i)` (weights/weights_*.wgsl).
//   dot: `put_vec8`, `get_vec8`, `add_dot` and `weights_<c>` (matmul/dot/*.wgsl).

//use matmul/common
//use weights
//use dot
//use experts/expert_rows

override SETS: u32;

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]
@group(0) @binding(3) var<storage, read> experts: array<u32>; // [rows, GROUPS]
@group(0) @binding(4) var<storage, read> shares: array<f32>; // [rows, GROUPS]

const QUADS = $QUADSu; // of a set: outputs by four
const THREADS = $THREADSu; // LANES * GROUPS * SETS
const HELD = $STAGEu; // vec8s of x: GROUPS * COLS / 8

var<workgroup> staged: array<vec4<f32>, $VECTORS>; // of x, and then the lanes' sums, of a group and one of padding
var<workgroup> job_shares: array<f32, GROUPS>;
var<workgroup> job_sums: array<vec4<f32>, $JOB_SUMS>; // [SETS, GROUPS, QUADS]

@compute @workgroup_size(LANES * GROUPS * SETS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
  let lane = thread % LANES;
  let group = thread / LANES % GROUPS;
  let own_set = thread / (LANES * GROUPS);
  let expert = experts[tile.y * GROUPS + group];
  // What is read at the end is asked for now.
  let own_out = tile.y * OUT_COLS + min(tile.x * SETS * $OUTSu + min(thread, SETS * $OUTSu - 1u), MATRIX_ROWS - 1u);
  let before = out[own_out];
  if (thread < GROUPS) {
    job_shares[thread] = shares[tile.y * GROUPS + thread];
  }
  //for s in LOADS
  let from$s = (tile.y * HELD + min(thread + $su * THREADS, HELD - 1u)) * 2u;
  let lo$s = x[from$s];
  let hi$s = x[from$s + 1u];
  //end
  let rows = rows_of(expert);
  let first = (tile.x * SETS + own_set) * $OUTSu;
  //for o in OUTS
  let at$o = (rows.first + min(first + $ou, MATRIX_ROWS - 1u) * rows.step) * blocks + lane;
  var sum$o = 0.0;
  //end
  //for j in STEPS
  //for o in OUTS
  var block$o_$j = load_block(at$o + $ju * LANES);
  //end
  //end
  //for s in LOADS
  if (($su + 1u) * THREADS <= HELD || thread + $su * THREADS < HELD) {
    put_vec8(0u, thread + $su * THREADS, lo$s, hi$s);
  }
  //end
  workgroupBarrier();
  for (var i = 0u; i < blocks; i += $STEPSu * LANES) {
    //for j in STEPS
    if ($WHOLE == 1 || i + $ju * LANES < blocks) {
      //for c in BLOCK_VEC8S
      {
        let own = get_vec8(0u, group * (COLS / 8u) + (i + $ju * LANES) * $BLOCK_VEC8Su + $cu * LANES + lane);
        //for o in OUTS
        sum$o = add_dot(sum$o, own, weights_$c(block$o_$j));
        //end
      }
      //end
    }
    if (i + $(STEPS + j)u * LANES < blocks) {
      //for o in OUTS
      block$o_$j = load_block(at$o + i + $(STEPS + j)u * LANES);
      //end
    }
    //end
  }
  workgroupBarrier(); // what is read of x
  //for q in QUADS
  staged[((own_set * GROUPS + group) * QUADS + $qu) * (LANES + 1u) + lane] =
    vec4<f32>(sum$(4 * q), sum$(4 * q + 1), sum$(4 * q + 2), sum$(4 * q + 3));
  //end
  workgroupBarrier();
  for (var i = thread; i < SETS * GROUPS * QUADS; i += THREADS) {
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //for l in UNROLL
      sum += staged[i * (LANES + 1u) + l + $lu];
      //end
    }
    job_sums[i] = sum;
  }
  workgroupBarrier();
  if (thread < SETS * $OUTSu && tile.x * SETS * $OUTSu + thread < MATRIX_ROWS) {
    let at = thread / $OUTSu * GROUPS * QUADS + thread % $OUTSu / 4u;
    var sum = before;
    for (var j = 0u; j < GROUPS; j++) {
      sum = fma(job_shares[j], job_sums[at + j * QUADS][thread % 4u], sum);
    }
    out[own_out] = sum;
  }
}
