// Prologue of matmuls that norm x: prologue_statements_normed.wgsl reads the norm's weights and, if sums of the branch
// before or outputs of its experts are still to be added, these, and writes the residual stream that receives the
// result. x is not written, because all workgroups read it. With BRANCH the sums are normed themselves, with
// branch_weight, before they are added; with SCALED the result is multiplied by scalar[0].

override EPS: f32;

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
//#if HANDOFF
// The sums that are added, where other workgroups of the dispatch make them (lib/handoff_statements.wgsl): all are one
// range of words.

//#import lib/handoff

var<workgroup> sums: array<vec4<f32>, RANGE / 4u>; // [ranges, COLS / 4]

// Called first, with the workgroups along y and z.
fn handoff_begin(y: u32, z: u32) {
  readers = y * z;
}

// As with words that are rounded (matmul_resident.wgsl), neighbours store components of one vec4.
fn keep_word(i: u32, word: u32) {
  sums[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {}
//#endif
//#if STORED
@group(0) @binding(10) var<storage, read> sums: array<vec4<f32>>; // [ranges, rows, COLS / 4]
//#endif
//#if BRANCH
override BRANCH_EPS: f32;

@group(0) @binding(12) var<storage, read> branch_weight: array<vec4<f32>>; // [COLS / 4]
//#endif
//#if SCALED
@group(0) @binding(13) var<storage, read> scalar: array<f32>; // [1]
//#endif
//#if WEIGHED
@group(0) @binding(10) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(12) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
//#endif
//#if STREAMED
@group(0) @binding(11) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: x + what is added
//#endif
//#if KEPT
override KEPT_COLS: u32; // row stride
override KEPT_FIRST: u32; // first column written

@group(0) @binding(14) var<storage, read_write> kept: array<vec4<f32>>; // [rows, KEPT_COLS / 4]: the same
//#endif

var<workgroup> squares: array<f32, $(ROWS * NORM_LANES)>; // of each row: the lanes' sums

//#import lib/add_squares

fn put_square(r: u32, lane: u32, square: f32) {
  if (lane < $NORM_LANESu) {
    squares[r * $NORM_LANESu + lane] = square;
  }
}

// Adds the sums of each row in the order of lib/workgroup_sum.wgsl, until $REST are left.
fn fold_squares(thread: u32) {
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = $NORM_LANESu >> (3u * $su + 3u);
    for (var i = thread; i < $ROWSu * left; i += THREADS) {
      let at = i / left * $NORM_LANESu + i % left;
      var sum = 0.0;
      //#for e in 8
      sum += squares[at + $eu * left];
      //#endfor
      squares[at] = sum;
    }
    workgroupBarrier();
  }
  //#endfor
}

// What the norm multiplies a row by, after fold_squares.
fn norm_scale(r: u32, eps: f32) -> f32 {
  var sum = 0.0;
  //#for e in REST
  sum += squares[r * $NORM_LANESu + $eu];
  //#endfor
  return 1.0 / sqrt(sum / f32(COLS) + eps);
}
