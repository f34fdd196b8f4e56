// What becomes of the lanes' sums in the matmuls: they are added in the order of the lanes, the epilogue makes outputs
// of them, and these go to `out`. A lane has the sums a<pair>_<row> and b<pair>_<row> of the outputs c and c + half.

override FIRST: u32; // column of out where the shard begins
override SPLIT_K: u32; // equal ranges of k, each with sums of its own

// First, where outputs go ($out). If the epilogue does not store them itself, these functions do it afterwards:
//
//   end_group(at)                             is called after the epilogue has had a group's outputs of a row; the
//                                             group's sums start at `at` of `staged`;
//   end_rows(thread, row, end, part, stride)  is called after it has had all groups' outputs of the rows `row` to
//                                             `end`, whose sums are `stride` apart; `part` is the workgroup's first
//                                             part of the columns.

//#if out == partials
// partials: the outputs only serve to choose tokens, so one result is stored for each part of the columns, which is two
// pairs of every group of a workgroup. The epilogue `partial` joins the outputs of a group, `end_rows` the groups'
// results.

//#import lib/partial_$partial

override FIRST_PARTIAL: u32; // parts of a row that the shards before have made

@group(0) @binding(2) var<storage, read_write> out: array<Partial>; // [rows, OUT_COLS]

// Two words as floats. `staged` holds floats, and halves are exact in them: words as floats could be NaN or
// too small, which an adapter need not keep.
fn halves_of(a: u32, b: u32) -> vec4<f32> {
  return vec4<f32>(vec4<u32>(a >> 16u, a & 0xffffu, b >> 16u, b & 0xffffu));
}

fn words_of(vector: vec4<f32>) -> vec2<u32> {
  let halves = vec4<u32>(vector);
  return (halves.xz << vec2<u32>(16u)) | halves.yw;
}

// Stores a group's partial result where its sums were, a vector for two words: its LANES + 1 vectors suffice.
fn end_group(at: u32) {
  //#for v in PARTIAL_PAIRS
  staged[at + $vu] = halves_of(kept[$(2 * v)], kept[$(2 * v + 1)]);
  //#endfor
  kept = NO_PARTIAL;
}

// Rows of x from `row` to `end`, one an invocation; their groups' results are `stride` vectors apart.
fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {
  workgroupBarrier();
  if (row + thread >= end) {
    return;
  }
  let first = thread * stride;
  let step = stride / GROUPS;
  var all = NO_PARTIAL;
  for (var g = 0u; g < GROUPS; g += $GROUPS_AT_ONCEu) {
    //#for g in GROUPS_AT_ONCE
    let at$g = first + (g + $gu) * step;
    let partial$g = Partial(
      //#for v in PARTIAL_PAIRS
      words_of(staged[at$g + $vu]),
      //#endfor
    );
    //#endfor
    //#for g in GROUPS_AT_ONCE
    all = joined(all, partial$g);
    //#endfor
  }
  out[(row + thread) * OUT_COLS + FIRST_PARTIAL + part] = all;
}
//#else if out == handoff
// handoff: other workgroups of the same dispatch wait for the outputs, word by word. 0 means that a word is not there
// yet, so the number 0 is stored as -0, which makes no difference to sums that begin with 0. No order between words is
// relied on.

// [SPLIT_K, OUT_COLS], and the counts of lib/handoff.wgsl
@group(0) @binding(2) var<storage, read_write> out: array<atomic<u32>>;

fn put_word(at: u32, value: f32) {
  let word = bitcast<u32>(value);
  atomicStore(&out[at], select(word, 0x80000000u, word == 0u));
}

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
//#else
// numbers: the epilogue stores them.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
//#endif

// Then how lanes are added, $ending. Each calls `epilogue(row, c, half, sum)` for the outputs that there are.

//#if ending == one_lane
// one_lane: an invocation makes its outputs alone; their sums go through workgroup memory to a loop in
// lib/matmul_ending_statements.

var<workgroup> sums: array<vec2<f32>, $(THREADS * PAIRS * ROWS)>;
//#else if ending == pair
// pair: groups have one pair of outputs. The two floats of each invocation go through workgroup memory of their own, so
// that no invocation waits for others that still read x. No group keeps a partial result.

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
// lanes: $SUMS rows of x at a time go through workgroup memory, each a vector (a0, b0, a1, b1) of two pairs; a vector
// of padding a group keeps its lanes off the banks of the next group. `end_group` may overwrite what its group has
// added, `end_rows` all.

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
