// add_lanes.wgsl of groups with one pair alone: two floats an invocation, in workgroup memory of their own, so that nobody
// waits for those who still read x. No group keeps a partial result.

var<workgroup> staged: array<vec4<f32>, $VECTORS>;
var<workgroup> lane_sums: array<vec2<f32>, $PAIR_SUMS>;

fn add_pairs(
  thread: u32,
  row: u32, // first row of x
  split: u32,
  column: u32, // pair of the workgroup's first group
  //for s in SUMS
  sums$s: vec2<f32>,
  //end
) {
  let half = MATRIX_ROWS / 2u;
  let rows = arrayLength(&x) / (COLS / 4u);
  let stride = GROUPS * (LANES + 1u);
  //for s in SUMS
  lane_sums[$su * stride + thread + thread / LANES] = sums$s;
  //end
  workgroupBarrier();
  for (var i = thread; i < GROUPS * $SUMSu; i += LANES * GROUPS) {
    let group = i % GROUPS;
    let s = i / GROUPS;
    let first = s * stride + group * (LANES + 1u);
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //for l in UNROLL
      sum += lane_sums[first + l + $lu];
      //end
    }
    let c = column + group;
    if (row + s < rows && c < half) {
      epilogue(split * rows + row + s, c, half, sum);
    }
  }
  //for t in MORE_TILES
  workgroupBarrier(); // before the next rows' sums
  //end
}
