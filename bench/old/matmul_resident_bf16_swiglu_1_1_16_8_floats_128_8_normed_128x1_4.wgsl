// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. 8 blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is 128. Slots `epilogue`, `out`, `weights`, `sums` and `ending` are those of matmul.wgsl, `dot`
// that of matmul_staged.wgsl; besides:
//   held: what `hold` declares outside of functions (hold/*_held.wgsl).
//   hold: the statements that put x of the range into workgroup memory by `put_vec8` (hold/*.wgsl).

// Epilogue of matmul over a matrix [gate; up]: out = silu(gate) * up.

// silu(gate) * up, silu(g) = g / (1 + exp(-g)).

fn gated(sum: vec2<f32>) -> f32 {
  return sum.x / (1.0 + exp(-sum.x)) * sum.y;
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  out[row * OUT_COLS + FIRST + c] = gated(sum);
}
// The output of a matmul whose epilogue stores numbers. Nothing is done after those of a group or of a row.
//
//   end_group(at): called when the epilogue has had a group's outputs; the group's sums start at `at`.
//   end_rows(thread, row, end, part, stride): called when it has had those of rows `row` to `end`; see out_partial.wgsl.

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [SPLIT_K, rows, OUT_COLS]

fn end_group(at: u32) {}

fn end_rows(thread: u32, row: u32, end: u32, part: u32, stride: u32) {}
// What the kernels of matmul*.wgsl override besides.

// What all matmul kernels bind and override, the experts' too. Slot:
//   packing: `fn packed_lanes()`, what quantized rows are packed for: LANES, or a part of them (part/packed_*.wgsl).

// Quantized rows that are packed for the invocations that share an output.

fn packed_lanes() -> u32 {
  return LANES;
}

override COLS: u32; // k; a multiple of 8
override MATRIX_ROWS: u32; // rows of W in this shard, or of one expert; even
override OUT_COLS: u32; // row stride of out
override LANES: u32; // invocations that share an output
override GROUPS: u32; // of lanes in a workgroup

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, COLS / 4]: its size gives the rows

override FIRST: u32; // column of out where the shard begins
override SPLIT_K: u32; // equal ranges of k, each with sums of its own
// A row-major matrix of bf16, packed two to a u32 (low half first). bf16 -> f32 is a shift: exact.

// Vec8 floats in order.

struct Vec8 {
  lo: vec4<f32>,
  hi: vec4<f32>,
}

@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>; // [SHARD_ROWS, COLS / 8]

alias PackedBlock = vec4<u32>; // eight consecutive weights as stored

fn load_block(i: u32) -> PackedBlock {
  return weights[i];
}

fn vec8_0(p: PackedBlock) -> Vec8 {
  return Vec8(
    bitcast<vec4<f32>>(vec4<u32>(p.x << 16u, p.x & 0xffff0000u, p.y << 16u, p.y & 0xffff0000u)),
    bitcast<vec4<f32>>(vec4<u32>(p.z << 16u, p.z & 0xffff0000u, p.w << 16u, p.w & 0xffff0000u)),
  );
}
// Adds what the lanes of each group summed, in the order of the lanes, and calls the epilogue.
// 1 rows of x at a time go through workgroup memory, each a vector (a0, b0, a1, b1) of two pairs; a
// vector of padding a group keeps its lanes off the banks of the next group. `end_group` may overwrite
// what its group has added, `end_rows` all (slot `out` of matmul.wgsl).

var<workgroup> staged: array<vec4<f32>, 256>;

fn add_lanes(
  thread: u32,
  row: u32, // first row of x
  split: u32,
  column: u32, // pair of the workgroup's first group
  step: u32, // pairs from group to group
  sums0: vec4<f32>,
) {
  let half = MATRIX_ROWS / 2u;
  let rows = arrayLength(&x) / (COLS / 4u);
  let stride = GROUPS * (LANES + 1u);
  workgroupBarrier();
  staged[0u * stride + thread + thread / LANES] = sums0;
  workgroupBarrier();
  for (var i = thread; i < GROUPS * 1u; i += LANES * GROUPS) {
    let group = i % GROUPS;
    let s = i / GROUPS;
    let first = s * stride + group * (LANES + 1u);
    var sum = vec4<f32>(0.0);
    for (var l = 0u; l < LANES; l += 16u) {
      sum += staged[first + l + 0u];
      sum += staged[first + l + 1u];
      sum += staged[first + l + 2u];
      sum += staged[first + l + 3u];
      sum += staged[first + l + 4u];
      sum += staged[first + l + 5u];
      sum += staged[first + l + 6u];
      sum += staged[first + l + 7u];
      sum += staged[first + l + 8u];
      sum += staged[first + l + 9u];
      sum += staged[first + l + 10u];
      sum += staged[first + l + 11u];
      sum += staged[first + l + 12u];
      sum += staged[first + l + 13u];
      sum += staged[first + l + 14u];
      sum += staged[first + l + 15u];
    }
    let c = column + group * step;
    if (row + s < rows && c < half) {
      epilogue(split * rows + row + s, c, half, sum.xy);
    }
    if (1u > 1u && row + s < rows && c + 1u < half) {
      epilogue(split * rows + row + s, c + 1u, half, sum.zw);
    }
    end_group(first);
  }
  // Two pairs of every group are a part of the columns; a workgroup makes step / 2 of them.
  let part = column / (GROUPS * step) * (step / 2u) + column % (GROUPS * step) / 2u;
  end_rows(thread, row, min(row + 1u, rows), part, stride);
}
// Inner products of the staged matmul in f32 (floats_x.wgsl).

// Inner products in f32, for weights that are floats or have zeros of their own: x as it is.

// sum + x . w over a vec8, one k after the other.



fn add8(sum: f32, lo: vec4<f32>, hi: vec4<f32>, w: Vec8) -> f32 {
  let a = fma(lo.w, w.lo.w, fma(lo.z, w.lo.z, fma(lo.y, w.lo.y, fma(lo.x, w.lo.x, sum))));
  return fma(hi.w, w.hi.w, fma(hi.z, w.hi.z, fma(hi.y, w.hi.y, fma(hi.x, w.hi.x, a))));
}

alias X = Vec8;

fn x_of(lo: vec4<f32>, hi: vec4<f32>) -> X {
  return X(lo, hi);
}

fn add_dot(sum: f32, x: X, w: Vec8) -> f32 {
  return add8(sum, x.lo, x.hi, w);
}

fn weights_0(block: PackedBlock) -> Vec8 {
  return vec8_0(block);
}
// How floats.wgsl and whole.wgsl read x: of each row the low halves of its vec8s and then the high
// ones, so that neighbouring lanes read neighbouring vectors.

fn get_vec8(row: u32, e: u32) -> X {
  return X(staged[row * 2u * 128u + e], staged[(row * 2u + 1u) * 128u + e]);
}

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * 128u + e] = lo;
  staged[(row * 2u + 1u) * 128u + e] = hi;
}
// What normed.wgsl declares: the norm's weights and, where sums of the branch before or outputs of its experts are
// still to be added, these and where the residual stream goes. x is not written: all workgroups read it.

override EPS: f32;

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(10) var<storage, read> sums: array<vec4<f32>>; // [4, rows, COLS / 4]
@group(0) @binding(11) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: x + what is added

var<workgroup> squares: array<f32, 128>;

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

const THREADS = 128u; // LANES * GROUPS

@compute @workgroup_size(LANES * GROUPS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  // The first lines of `main` of matmul*.wgsl: tiles of consecutive rows of x, and the range of k.
  // The first lines of `main` of every matmul, of the experts' too: which outputs the invocation `thread`
  // of workgroup `tile` makes. It shares the pairs from `pair` on with the other lanes of its group.
  let half = MATRIX_ROWS / 2u; // output pairs of the matrix
  let blocks = COLS / 8u / 1u; // of a row of the matrix
  let lane = thread % LANES;
  let pair = (tile.y * GROUPS + thread / LANES) * 1u;
  let range = blocks / SPLIT_K; // blocks of the range
  let row = tile.x * 1u; // first of the tile
  let rows = arrayLength(&x) / (COLS / 4u);
  // The lane's first vec8 of a range.
  let packed = lane / packed_lanes() * packed_lanes() * 1u + lane % packed_lanes();

  let at0 = min(pair + 0u, half - 1u) * blocks + tile.z * range + lane;
  var a0_0 = 0.0;
  var b0_0 = 0.0;
  var block_a0_0 = load_block(at0 + 0u * LANES);
  var block_b0_0 = load_block(at0 + half * blocks + 0u * LANES);
  var block_a0_1 = load_block(at0 + 1u * LANES);
  var block_b0_1 = load_block(at0 + half * blocks + 1u * LANES);
  var block_a0_2 = load_block(at0 + 2u * LANES);
  var block_b0_2 = load_block(at0 + half * blocks + 2u * LANES);
  var block_a0_3 = load_block(at0 + 3u * LANES);
  var block_b0_3 = load_block(at0 + half * blocks + 3u * LANES);
  var block_a0_4 = load_block(at0 + 4u * LANES);
  var block_b0_4 = load_block(at0 + half * blocks + 4u * LANES);
  var block_a0_5 = load_block(at0 + 5u * LANES);
  var block_b0_5 = load_block(at0 + half * blocks + 5u * LANES);
  var block_a0_6 = load_block(at0 + 6u * LANES);
  var block_b0_6 = load_block(at0 + half * blocks + 6u * LANES);
  var block_a0_7 = load_block(at0 + 7u * LANES);
  var block_b0_7 = load_block(at0 + half * blocks + 7u * LANES);
  // How matmul_resident.wgsl brings x to workgroup memory: normed, v / sqrt(mean(v^2) + EPS) * norm_weight with
  // v = x + the sums of a split-K matmul, or the weighted outputs of experts, which the first workgroup of a row also
  // stores. Every sum has the order of
  // norm/rms_norm.wgsl with 128 lanes: vec8 i belongs to lane i % 128, an invocation has the
  // lanes thread, thread + THREADS, ...
  let i0_0 = thread + 0u;
  let mine0_0 = thread + 0u < 128u && i0_0 < COLS / 8u;
  let vec0_0 = select(0u, i0_0, mine0_0);
  let gain_lo0_0 = norm_weight[2u * vec0_0];
  let gain_hi0_0 = norm_weight[2u * vec0_0 + 1u];
  let v_at0_0_0 = min(row + 0u, rows - 1u) * (COLS / 4u) + 2u * vec0_0;
  var v_lo0_0_0 = x[v_at0_0_0];
  var v_hi0_0_0 = x[v_at0_0_0 + 1u];
  var s_lo0_0_0 = sums[v_at0_0_0];
  var s_hi0_0_0 = sums[v_at0_0_0 + 1u];
  s_lo0_0_0 += sums[(0u + 1u) * rows * (COLS / 4u) + v_at0_0_0];
  s_hi0_0_0 += sums[(0u + 1u) * rows * (COLS / 4u) + v_at0_0_0 + 1u];
  s_lo0_0_0 += sums[(1u + 1u) * rows * (COLS / 4u) + v_at0_0_0];
  s_hi0_0_0 += sums[(1u + 1u) * rows * (COLS / 4u) + v_at0_0_0 + 1u];
  s_lo0_0_0 += sums[(2u + 1u) * rows * (COLS / 4u) + v_at0_0_0];
  s_hi0_0_0 += sums[(2u + 1u) * rows * (COLS / 4u) + v_at0_0_0 + 1u];
  v_lo0_0_0 += s_lo0_0_0;
  v_hi0_0_0 += s_hi0_0_0;
  {
    var square = 0.0;
    if (mine0_0) {
      square = add_squares(add_squares(square, v_lo0_0_0), v_hi0_0_0);
      if (tile.y == 0u && row + 0u < rows) {
        stream[v_at0_0_0] = v_lo0_0_0;
        stream[v_at0_0_0 + 1u] = v_hi0_0_0;
      }
    }
    if (thread + 0u < 128u) {
      squares[0u + thread + 0u] = square;
    }
  }
  workgroupBarrier();
  {
    let left = 128u >> (3u * 0u + 3u);
    for (var i = thread; i < 1u * left; i += THREADS) {
      let at = i / left * 128u + i % left;
      var sum = 0.0;
      sum += squares[at + 0u * left];
      sum += squares[at + 1u * left];
      sum += squares[at + 2u * left];
      sum += squares[at + 3u * left];
      sum += squares[at + 4u * left];
      sum += squares[at + 5u * left];
      sum += squares[at + 6u * left];
      sum += squares[at + 7u * left];
      squares[at] = sum;
    }
    workgroupBarrier();
  }
  {
    var sum = 0.0;
    sum += squares[0u];
    sum += squares[1u];
    sum += squares[2u];
    sum += squares[3u];
    sum += squares[4u];
    sum += squares[5u];
    sum += squares[6u];
    sum += squares[7u];
    sum += squares[8u];
    sum += squares[9u];
    sum += squares[10u];
    sum += squares[11u];
    sum += squares[12u];
    sum += squares[13u];
    sum += squares[14u];
    sum += squares[15u];
    let scale = 1.0 / sqrt(sum / f32(COLS) + EPS);
    if (mine0_0) {
      put_vec8(0u, i0_0, v_lo0_0_0 * scale * gain_lo0_0, v_hi0_0_0 * scale * gain_hi0_0);
    }
  }
  workgroupBarrier();
  for (var first = 0u; first < range; first += 8u * LANES) {
    {
      let k = (first + 0u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_0);
      let wb0 = weights_0(block_b0_0);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 1u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_1);
      let wb0 = weights_0(block_b0_1);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 2u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_2);
      let wb0 = weights_0(block_b0_2);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 3u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_3);
      let wb0 = weights_0(block_b0_3);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 4u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_4);
      let wb0 = weights_0(block_b0_4);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 5u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_5);
      let wb0 = weights_0(block_b0_5);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 6u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_6);
      let wb0 = weights_0(block_b0_6);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
    {
      let k = (first + 7u * LANES) * 1u + 0u * packed_lanes() + packed;
      let wa0 = weights_0(block_a0_7);
      let wb0 = weights_0(block_b0_7);
      {
        let own = get_vec8(0u, k);
        a0_0 = add_dot(a0_0, own, wa0);
        b0_0 = add_dot(b0_0, own, wb0);
      }
    }
  }
  // lanes.wgsl of a group with one pair alone.
  add_lanes(
    thread,
    row + 0u,
    tile.z,
    tile.y * GROUPS,
    1u,
    vec4<f32>(a0_0, b0_0, 0.0, 0.0),
  );
}
