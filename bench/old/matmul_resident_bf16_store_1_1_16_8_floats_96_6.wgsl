// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. 6 blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is 96. Slots `epilogue`, `out`, `weights`, `sums` and `ending` are those of matmul.wgsl, `dot`
// that of matmul_staged.wgsl; besides:
//   held: what `hold` declares outside of functions (hold/*_held.wgsl).
//   hold: the statements that put x of the range into workgroup memory by `put_vec8` (hold/*.wgsl).

// Epilogue of matmul: out = y.

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] = sum.x;
  out[at + half] = sum.y;
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

var<workgroup> staged: array<vec4<f32>, 192>;

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
  return X(staged[row * 2u * 96u + e], staged[(row * 2u + 1u) * 96u + e]);
}

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * 96u + e] = lo;
  staged[(row * 2u + 1u) * 96u + e] = hi;
}
// rows.wgsl declares nothing.

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
  // How matmul_resident.wgsl brings x to workgroup memory: as it is.
  let i0 = thread + 0u * THREADS;
  let from0 = min(row + min(i0 / 96u, 1u - 1u), rows - 1u) * (COLS / 4u) +
    (tile.z * 96u + i0 % 96u) * 2u;
  let lo0 = x[from0];
  let hi0 = x[from0 + 1u];
  if (i0 < 1u * 96u) {
    put_vec8(i0 / 96u, i0 % 96u, lo0, hi0);
  }
  workgroupBarrier();
  for (var first = 0u; first < range; first += 6u * LANES) {
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
