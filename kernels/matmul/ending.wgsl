//#if ending == one_lane
// Where the outputs of an invocation that makes them alone wait.

var<workgroup> sums: array<vec2<f32>, $(THREADS * PAIRS * ROWS)>;
//#else if ending == pair
// `add_lanes` of groups with one pair alone: two floats an invocation, in workgroup memory of their own, so that nobody
// waits for those who still read x. No group keeps a partial result.

var<workgroup> staged: array<vec4<f32>, $VECTORS>;
var<workgroup> lane_sums: array<vec2<f32>, $PAIR_SUMS>;

fn add_pairs(
  thread: u32,
  row: u32, // first row of x
  split: u32,
  column: u32, // pair of the workgroup's first group
  //#for s in SUMS
  sums$s: vec2<f32>,
  //#endfor
) {
  let half = MATRIX_ROWS / 2u;
  let rows = arrayLength(&x) / (COLS / 4u);
  let stride = GROUPS * (LANES + 1u);
  //#for s in SUMS
  lane_sums[$su * stride + thread + thread / LANES] = sums$s;
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < GROUPS * $SUMSu; i += LANES * GROUPS) {
    let group = i % GROUPS;
    let s = i / GROUPS;
    let first = s * stride + group * (LANES + 1u);
    var sum = vec2<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //#for l in UNROLL
      sum += lane_sums[first + l + $lu];
      //#endfor
    }
    let c = column + group;
    if (row + s < rows && c < half) {
      epilogue(split * rows + row + s, c, half, sum);
    }
  }
  //#if MORE_TILES
  workgroupBarrier(); // before the next rows' sums
  //#endif
}
//#else
// Adds what the lanes of each group summed, in the order of the lanes, and calls the epilogue.
// $SUMS rows of x at a time go through workgroup memory, each a vector (a0, b0, a1, b1) of two pairs; a
// vector of padding a group keeps its lanes off the banks of the next group. `end_group` may overwrite
// what its group has added, `end_rows` all (out.wgsl).

var<workgroup> staged: array<vec4<f32>, $VECTORS>;

fn add_lanes(
  thread: u32,
  row: u32, // first row of x
  split: u32,
  column: u32, // pair of the workgroup's first group
  step: u32, // pairs from group to group
  //#for s in SUMS
  sums$s: vec4<f32>,
  //#endfor
) {
  let half = MATRIX_ROWS / 2u;
  let rows = arrayLength(&x) / (COLS / 4u);
  let stride = GROUPS * (LANES + 1u);
  workgroupBarrier();
  //#for s in SUMS
  staged[$su * stride + thread + thread / LANES] = sums$s;
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < GROUPS * $SUMSu; i += LANES * GROUPS) {
    let group = i % GROUPS;
    let s = i / GROUPS;
    let first = s * stride + group * (LANES + 1u);
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l += $UNROLLu) {
      //#for l in UNROLL
      sum += staged[first + l + $lu];
      //#endfor
    }
    let c = column + group * step;
    if (row + s < rows && c < half) {
      epilogue(split * rows + row + s, c, half, sum.xy);
    }
    if ($PAIRSu > 1u && row + s < rows && c + 1u < half) {
      epilogue(split * rows + row + s, c + 1u, half, sum.zw);
    }
    end_group(first);
  }
  // Two pairs of every group are a part of the columns; a workgroup makes step / 2 of them.
  let part = column / (GROUPS * step) * (step / 2u) + column % (GROUPS * step) / 2u;
  end_rows(thread, row, min(row + $SUMSu, rows), part, stride);
}
//#endif
