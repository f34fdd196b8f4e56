// y[r, n] = sum_k x[r, k] * W[n, k] for the rows of one shard of W, f32 accumulation.
//
// One workgroup: GROUPS pairs of output columns (c, c + SHARD_ROWS / 2) for $ROWS rows of x.
// LANES invocations share a pair; lane l sums k = 8 * (l + j * LANES) .. + 7 in order of j, the
// lanes are then added in order of l. The order does not depend on $ROWS, so a row has the same
// bits whatever number of rows is in flight. The pair suits SwiGLU: gate and up lie half apart.
//
// Weights are read once for all rows. `weights8` and `finish` come from the files around this one.

override COLS: u32; // k; a multiple of 8
override SHARD_ROWS: u32; // rows of W in this shard; even
override OUT_COLS: u32; // row stride of out
override FIRST: u32; // column of out where the shard begins
override LANES: u32;
override GROUPS: u32;

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, OUT_COLS]

var<workgroup> partial: array<vec2<f32>, LANES * GROUPS * $ROWSu>;

fn sum4(v: vec4<f32>) -> f32 {
  return (v.x + v.y) + (v.z + v.w);
}

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let half = SHARD_ROWS / 2u;
  let lane = thread % LANES;
  let group = thread / LANES;
  let column = min(tile.x * GROUPS + group, half - 1u);
  let row = tile.y * $ROWSu;
  let eights = COLS / 8u;

  //for r in ROWS
  var a$r = vec4<f32>(0.0);
  var b$r = vec4<f32>(0.0);
  //end
  for (var k = lane; k < eights; k += LANES) {
    let a = weights8(column * eights + k);
    let b = weights8((column + half) * eights + k);
    //for r in ROWS
    let lo$r = x[((row + $ru) * eights + k) * 2u];
    let hi$r = x[((row + $ru) * eights + k) * 2u + 1u];
    a$r = fma(hi$r, a.hi, fma(lo$r, a.lo, a$r));
    b$r = fma(hi$r, b.hi, fma(lo$r, b.lo, b$r));
    //end
  }

  //for r in ROWS
  partial[$ru * LANES * GROUPS + thread] = vec2<f32>(sum4(a$r), sum4(b$r));
  //end
  workgroupBarrier();
  for (var i = thread; i < GROUPS * $ROWSu; i += LANES * GROUPS) {
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l++) {
      sum += partial[i * LANES + l];
    }
    let c = tile.x * GROUPS + i % GROUPS;
    if (c < half) {
      finish((row + i / GROUPS) * OUT_COLS + FIRST, c, half, sum);
    }
  }
}
