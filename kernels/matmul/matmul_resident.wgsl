// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. $AHEAD blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is $STAGE, or the last blocks of some lanes are missing (`within`): then x is 0 there. Imports are
// those of matmul_staged.wgsl. `put_vec8` stores x in workgroup memory ($prologue): as it is, normed, normed by heads and
// gated, as the sum of attention's splits, or as other workgroups of the dispatch make it.

//#import lib/matmul_sizes
//#import lib/epilogue
//#import lib/matmul_outputs
//#import lib/weights_$weights
//#import lib/staged_x
//#if prologue == normed
//#import lib/normed_x
//#else if prologue == combined
// combined: x is attention's output, and its partial sums (attention/attention.wgsl) are read instead, of at most
// $SPLITS splits that a row sees. x itself is not read, its size gives the number of rows.

//#import lib/rows
//#import lib/visible

override HEADS: u32;
override KV_SPLITS: u32; // of a whole block table

const SPLIT_CELLS = 64u;
const HEAD = $HEADu; // vec4 of a head
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(9) var<storage, read> parts: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(10) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(11) var<storage, read> row_list: array<Row>; // [rows]
//#if SINKS
@group(0) @binding(12) var<storage, read> sinks: array<f32>; // [HEADS]: a logit without a value
//#endif
//#if GATED
//#import lib/sigmoid_gate

override GATE_COLS: u32; // row stride of gate, a multiple of 4
override GATE_FIRST: u32; // a multiple of 4

@group(0) @binding(13) var<storage, read> gate: array<vec4<f32>>; // [rows, GATE_COLS / 4]

// Four numbers of a row, gated as in attention_combine.wgsl.
fn gated(row: u32, quad: u32, y: vec4<f32>) -> vec4<f32> {
  return sigmoid_gated(y, gate[(row * GATE_COLS + GATE_FIRST) / 4u + quad]);
}
//#else
fn gated(row: u32, quad: u32, y: vec4<f32>) -> vec4<f32> {
  return y;
}
//#endif
//#else if prologue == gated
// gated: the heads of x are normed and gated on the way, as in norm/gated_norm.wgsl. A range of k has whole heads.

//#import lib/head_gate

override EPS: f32;
override GATE_COLS: u32; // row stride of gate, a multiple of 4
override GATE_FIRST: u32; // a multiple of 4

const HEAD_VEC8S = $HEAD_VEC8Su; // vec8s of a head

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [head / 4]
@group(0) @binding(10) var<storage, read> gate: array<vec4<f32>>; // [rows, GATE_COLS / 4]

var<workgroup> squares: array<f32, $(ROWS * STAGE)>; // of the vec8s
//#else if prologue == handoff
// handoff: other workgroups of the dispatch make x, one row, while this one waits (lib/handoff_statements.wgsl); a range of
// words is one of k. x itself is not read, its size gives the number of rows, which is one.

//#import lib/handoff
//#if dots == floats
// Products of floats keep the words as they are.

fn keep_word(i: u32, word: u32) {
  put_float(i, bitcast<f32>(word));
}

fn take_words(thread: u32) {}
//#else
// Products of integers round eight words together, once all are there. Ranges of quantized matrices are whole
// (handoff.ts), so nothing is stored behind a range that would need a barrier. Neighbouring invocations store different
// components of one vec4. WGSL does not promise that such stores are independent; Vulkan's drivers, the only ones with
// handoffs, store each component alone.

var<workgroup> words_taken: array<vec4<f32>, $(2 * STAGE)>;

fn keep_word(i: u32, word: u32) {
  words_taken[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {
  for (var e = thread; e < $STAGEu; e += THREADS) {
    put_vec8(0u, e, words_taken[2u * e], words_taken[2u * e + 1u]);
  }
}
//#endif

// Called first, with the workgroups along y and z.
fn handoff_begin(y: u32, z: u32) {
  readers = y;
}
//#endif
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
  //#for j in AHEAD
  var block_a$p_$j = load_block(at$p + within($ju * LANES, last));
  var block_b$p_$j = load_block(at$p + half * blocks + within($ju * LANES, last));
  //#endfor
  //#endfor
  //#if prologue == normed
  //#import lib/normed_x_statements
  //#else if prologue == combined
  //#if HALVES
  // Adds attention's splits as below, for x as floats: each invocation makes four numbers, half of a vec8.
  //#for s in HALF_LOADS
  {
    let i = thread + $su * THREADS;
    if (i < 2u * $ROWSu * $STAGEu) {
      let r = min(row + i / (2u * $STAGEu), rows - 1u);
      let own = row_list[r];
      let first = select(visible_begin(own) / SPLIT_CELLS, 0u, WINDOW == 0xffffffffu);
      let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
      let quad = tile.z * 2u * $STAGEu + i % (2u * $STAGEu);
      let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
      // The loads of the first splits' sums wait neither for the row nor for the splits' peaks.
      //#for c in HALF
      let from$c = at + min($cu, KV_SPLITS - 1u);
      let early$c = parts[from$c * HEAD + quad % HEAD];
      let known$c = stats[from$c];
      //#endfor
      //#for c in HALF
      let part$c = select(vec4<f32>(0.0), early$c, $cu < splits);
      let stat$c = select(vec2<f32>(NEGATIVE, 0.0), known$c, $cu < splits);
      var stat$(HALF + c) = vec2<f32>(NEGATIVE, 0.0);
      if ($(HALF + c)u < splits) {
        stat$(HALF + c) = stats[at + $(HALF + c)u];
      }
      //#endfor
      var top = NEGATIVE;
      //#for c in SPLITS
      top = max(top, stat$c.x);
      //#endfor
      var total = 0.0;
      var sum = vec4<f32>(0.0);
      //#for c in HALF
      {
        let share = exp(stat$c.x - top);
        total = fma(stat$c.y, share, total);
        sum = fma(part$c, vec4<f32>(share), sum);
      }
      //#endfor
      if ($HALFu < splits) {
        //#for c in HALF
        let part$(HALF + c) = parts[(at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD];
        //#endfor
        //#for c in HALF
        {
          let share = exp(stat$(HALF + c).x - top);
          total = fma(stat$(HALF + c).y, share, total);
          sum = fma(part$(HALF + c), vec4<f32>(share), sum);
        }
        //#endfor
      }
      //#if SINKS
      total += exp(min(sinks[quad / HEAD] - top, 80.0));
      //#endif
      let y = gated(r, quad, sum / total);
      put_half(i / (2u * $STAGEu), i % (2u * $STAGEu), select(vec4<f32>(0.0), y, splits > 0u));
    }
  }
  //#endfor
  //#else
  // Attention's splits are added on the way, as attention_combine.wgsl does where each lane has a split at most.
  //#for s in LOADS
  {
    let i = thread + $su * THREADS;
    if (i < $ROWSu * $STAGEu) {
      let r = min(row + i / $STAGEu, rows - 1u);
      let own = row_list[r];
      let first = visible_begin(own) / SPLIT_CELLS;
      let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
      let quad = (tile.z * $STAGEu + i % $STAGEu) * 2u;
      let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
      // The loads of the first splits' sums do not wait for the splits' peaks.
      //#for c in HALF
      let at$c = (at + min($cu, splits - 1u)) * HEAD + quad % HEAD;
      let lo$c = parts[at$c];
      let hi$c = parts[at$c + 1u];
      //#endfor
      //#for c in SPLITS
      var stat$c = vec2<f32>(NEGATIVE, 0.0);
      if ($cu < splits) {
        stat$c = stats[at + $cu];
      }
      //#endfor
      var top = NEGATIVE;
      //#for c in SPLITS
      top = max(top, stat$c.x);
      //#endfor
      var total = 0.0;
      var lo = vec4<f32>(0.0);
      var hi = vec4<f32>(0.0);
      //#for c in HALF
      {
        let share = exp(stat$c.x - top);
        total = fma(stat$c.y, share, total);
        lo = fma(lo$c, vec4<f32>(share), lo);
        hi = fma(hi$c, vec4<f32>(share), hi);
      }
      //#endfor
      if ($HALFu < splits) {
        //#for c in HALF
        let at$(HALF + c) = (at + min($(HALF + c)u, splits - 1u)) * HEAD + quad % HEAD;
        let lo$(HALF + c) = parts[at$(HALF + c)];
        let hi$(HALF + c) = parts[at$(HALF + c) + 1u];
        //#endfor
        //#for c in HALF
        {
          let share = exp(stat$(HALF + c).x - top);
          total = fma(stat$(HALF + c).y, share, total);
          lo = fma(lo$(HALF + c), vec4<f32>(share), lo);
          hi = fma(hi$(HALF + c), vec4<f32>(share), hi);
        }
        //#endfor
      }
      //#if SINKS
      total += exp(min(sinks[quad / HEAD] - top, 80.0));
      //#endif
      let seen = splits > 0u;
      let y_lo = gated(r, quad, lo / total);
      let y_hi = gated(r, quad + 1u, hi / total);
      put_vec8(i / $STAGEu, i % $STAGEu, select(vec4<f32>(0.0), y_lo, seen), select(vec4<f32>(0.0), y_hi, seen));
    }
  }
  //#endfor
  //#endif
  //#else if prologue == gated
  //#for s in LOADS
  let i$s = thread + $su * THREADS;
  let r$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u);
  let vec8$s = tile.z * $STAGEu + i$s % $STAGEu;
  let v_lo$s = x[r$s * (COLS / 4u) + 2u * vec8$s];
  let v_hi$s = x[r$s * (COLS / 4u) + 2u * vec8$s + 1u];
  let z_at$s = (r$s * GATE_COLS + GATE_FIRST) / 4u + 2u * vec8$s;
  let gain_lo$s = norm_weight[vec8$s % HEAD_VEC8S * 2u] * silu(gate[z_at$s]);
  let gain_hi$s = norm_weight[vec8$s % HEAD_VEC8S * 2u + 1u] * silu(gate[z_at$s + 1u]);
  if (i$s < $ROWSu * $STAGEu) {
    squares[i$s] = square4(v_lo$s) + square4(v_hi$s);
  }
  //#endfor
  workgroupBarrier();
  //#for s in LOADS
  if (i$s < $ROWSu * $STAGEu) {
    let first = i$s / HEAD_VEC8S * HEAD_VEC8S;
    var sum = 0.0;
    for (var i = 0u; i < HEAD_VEC8S; i++) {
      sum += squares[first + i];
    }
    let scale = inverseSqrt(sum / f32(8u * HEAD_VEC8S) + EPS);
    put_vec8(i$s / $STAGEu, i$s % $STAGEu, v_lo$s * scale * gain_lo$s, v_hi$s * scale * gain_hi$s);
  }
  //#endfor
  //#else if prologue == handoff
  //#import lib/handoff_statements
  //#else
  // x as it is.
  //#for s in LOADS
  let i$s = thread + $su * THREADS;
  let from$s = min(row + min(i$s / $STAGEu, $ROWSu - 1u), rows - 1u) * (COLS / 4u) +
    (tile.z * $STAGEu + i$s % $STAGEu) * 2u;
  let lo$s = x[from$s];
  let hi$s = x[from$s + 1u];
  //#endfor
  //#for s in LOADS
  if (i$s < $ROWSu * $STAGEu) {
    put_vec8(i$s / $STAGEu, i$s % $STAGEu, lo$s, hi$s);
  }
  //#endfor
  //#endif
  workgroupBarrier();
  for (var first = 0u; first < range; first += $AHEADu * LANES) {
    //#for j in AHEAD
    //#for c in BLOCK_VEC8S
    {
      let k = (first + $ju * LANES) * $BLOCK_VEC8Su + $cu * packed_lanes() + packed;
      //#for p in PAIRS
      let wa$p = weights_$c(block_a$p_$j);
      let wb$p = weights_$c(block_b$p_$j);
      //#endfor
      //#if TURNS
      if ($cu == $BLOCK_VEC8Su - 1u) {
        let after = first + ($AHEADu + $ju) * LANES;
        let next = select(within(after, last), min(after, range - LANES), WHOLE);
        //#for p in PAIRS
        block_a$p_$j = load_block(at$p + next);
        block_b$p_$j = load_block(at$p + half * blocks + next);
        //#endfor
      }
      //#endif
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
