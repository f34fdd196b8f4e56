// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for few rows of narrow matrices: the
// whole range of k of x is brought to workgroup memory once, while the first weights are on their way, and
// no barrier follows until the lanes are added. 4 blocks of every row of W are loaded ahead of their use.
//
// COLS / 8 / SPLIT_K is 64. Slots `epilogue`, `out`, `weights`, `sums` and `ending` are those of matmul.wgsl, `dot`
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

var<workgroup> staged: array<vec4<f32>, 136>;

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
  return X(staged[row * 2u * 64u + e], staged[(row * 2u + 1u) * 64u + e]);
}

fn put_vec8(row: u32, e: u32, lo: vec4<f32>, hi: vec4<f32>) {
  staged[row * 2u * 64u + e] = lo;
  staged[(row * 2u + 1u) * 64u + e] = hi;
}
// What combined.wgsl declares: the partial sums of attention.wgsl, over at most 16 splits that a row sees. x itself
// is not read, its size gives the number of rows.

// What the kernels share about rows and slots; src/model/plan/rows_layout.ts mirrors the word offsets.

// One row of a forward pass.
struct Row {
  token: u32,
  position: u32, // in the text: for rope and for the noise; the row sees logical cells 0 .. position
  slot: u32,
  cell: u32, // where its key and value go, counted in tokens from the start of the slot's pages
  base: u32, // logical cells below are stored at the cell of the same number, the others on the path
  live: u32, // 0: padding; computes, but stores no key and no value
  zero: vec2<u32>,
  path: vec4<u32>, // byte i: logical cell base + i is stored at cell base + this, for base + i <= position
}

// The row of a token that follows the ones in the cells before its own: its path is empty.
fn chain_row(token: u32, slot: u32, cell: u32) -> Row {
  return Row(token, cell, slot, cell, cell + 1u, 1u, vec2<u32>(), vec4<u32>());
}

// One sequence in flight.
struct Slot {
  length: u32, // tokens whose keys and values are final
  pending: u32, // the newest token; its key and value are not computed yet
  seed: u32,
  top_k: u32, // 0 = off
  temperature: f32, // 0 = greedy
  top_p: f32,
  min_p: f32,
  limit: u32, // cells that it owns; a round that might need more stores nothing; 0 once it has stopped
  stops_lo: vec4<u32>, // token ids that end it, NOT_A_TOKEN where there are fewer than eight
  stops_hi: vec4<u32>,
}

const PAGE = 16u; // tokens a KV page
const NO_SLOT = 0xffffffffu; // a place of the batch without a sequence
// Which logical cells a row sees: the WINDOW ones that end with its own, or all up to there. And where
// they are stored: cells of other nodes of a tree may come between. Sums go by logical cell alone, so that a
// row has the same bits wherever its cells are stored.



override WINDOW: u32; // cells, the row's own the last; 0xffffffff = no window

fn visible_begin(row: Row) -> u32 {
  return row.position + 1u - min(WINDOW, row.position + 1u);
}

// One past the last cell that the row sees; 0 for padding.
fn visible_end(row: Row) -> u32 {
  return (row.position + 1u) * row.live;
}

// Whether some of the cells below `to` that the row may see are on its path; never for a chain.
fn scattered(row: Row, to: u32) -> bool {
  return row.base < min(to, visible_end(row));
}

// Where a logical cell that the row sees is stored.
fn physical(row: Row, cell: u32) -> u32 {
  let i = cell - row.base;
  let offset = (row.path[(i >> 2u) & 3u] >> (8u * (i & 3u))) & 0xffu;
  return select(row.base + offset, cell, cell < row.base);
}

override HEADS: u32;
override KV_SPLITS: u32; // of a whole block table

const SPLIT_CELLS = 64u;
const HEAD = 32u; // vec4 of a head
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(9) var<storage, read> parts: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(10) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(11) var<storage, read> row_list: array<Row>; // [rows]

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
  // How matmul_resident.wgsl brings the output of attention to workgroup memory: its splits are added on the way, as
  // attention_combine.wgsl does where each lane has a split at most.
  {
    let i = thread + 0u * THREADS;
    if (i < 1u * 64u) {
      let r = min(row + i / 64u, rows - 1u);
      let own = row_list[r];
      let first = visible_begin(own) / SPLIT_CELLS;
      let splits = (visible_end(own) + SPLIT_CELLS - 1u) / SPLIT_CELLS - min(first, visible_end(own));
      let quad = (tile.z * 64u + i % 64u) * 2u;
      let at = (r * HEADS + quad / HEAD) * KV_SPLITS + first;
      // Nobody waits for the splits' peaks before the first of their sums are asked for.
      let at0 = (at + min(0u, splits - 1u)) * HEAD + quad % HEAD;
      let lo0 = parts[at0];
      let hi0 = parts[at0 + 1u];
      let at1 = (at + min(1u, splits - 1u)) * HEAD + quad % HEAD;
      let lo1 = parts[at1];
      let hi1 = parts[at1 + 1u];
      let at2 = (at + min(2u, splits - 1u)) * HEAD + quad % HEAD;
      let lo2 = parts[at2];
      let hi2 = parts[at2 + 1u];
      let at3 = (at + min(3u, splits - 1u)) * HEAD + quad % HEAD;
      let lo3 = parts[at3];
      let hi3 = parts[at3 + 1u];
      let at4 = (at + min(4u, splits - 1u)) * HEAD + quad % HEAD;
      let lo4 = parts[at4];
      let hi4 = parts[at4 + 1u];
      let at5 = (at + min(5u, splits - 1u)) * HEAD + quad % HEAD;
      let lo5 = parts[at5];
      let hi5 = parts[at5 + 1u];
      let at6 = (at + min(6u, splits - 1u)) * HEAD + quad % HEAD;
      let lo6 = parts[at6];
      let hi6 = parts[at6 + 1u];
      let at7 = (at + min(7u, splits - 1u)) * HEAD + quad % HEAD;
      let lo7 = parts[at7];
      let hi7 = parts[at7 + 1u];
      var stat0 = vec2<f32>(NEGATIVE, 0.0);
      if (0u < splits) {
        stat0 = stats[at + 0u];
      }
      var stat1 = vec2<f32>(NEGATIVE, 0.0);
      if (1u < splits) {
        stat1 = stats[at + 1u];
      }
      var stat2 = vec2<f32>(NEGATIVE, 0.0);
      if (2u < splits) {
        stat2 = stats[at + 2u];
      }
      var stat3 = vec2<f32>(NEGATIVE, 0.0);
      if (3u < splits) {
        stat3 = stats[at + 3u];
      }
      var stat4 = vec2<f32>(NEGATIVE, 0.0);
      if (4u < splits) {
        stat4 = stats[at + 4u];
      }
      var stat5 = vec2<f32>(NEGATIVE, 0.0);
      if (5u < splits) {
        stat5 = stats[at + 5u];
      }
      var stat6 = vec2<f32>(NEGATIVE, 0.0);
      if (6u < splits) {
        stat6 = stats[at + 6u];
      }
      var stat7 = vec2<f32>(NEGATIVE, 0.0);
      if (7u < splits) {
        stat7 = stats[at + 7u];
      }
      var stat8 = vec2<f32>(NEGATIVE, 0.0);
      if (8u < splits) {
        stat8 = stats[at + 8u];
      }
      var stat9 = vec2<f32>(NEGATIVE, 0.0);
      if (9u < splits) {
        stat9 = stats[at + 9u];
      }
      var stat10 = vec2<f32>(NEGATIVE, 0.0);
      if (10u < splits) {
        stat10 = stats[at + 10u];
      }
      var stat11 = vec2<f32>(NEGATIVE, 0.0);
      if (11u < splits) {
        stat11 = stats[at + 11u];
      }
      var stat12 = vec2<f32>(NEGATIVE, 0.0);
      if (12u < splits) {
        stat12 = stats[at + 12u];
      }
      var stat13 = vec2<f32>(NEGATIVE, 0.0);
      if (13u < splits) {
        stat13 = stats[at + 13u];
      }
      var stat14 = vec2<f32>(NEGATIVE, 0.0);
      if (14u < splits) {
        stat14 = stats[at + 14u];
      }
      var stat15 = vec2<f32>(NEGATIVE, 0.0);
      if (15u < splits) {
        stat15 = stats[at + 15u];
      }
      var top = NEGATIVE;
      top = max(top, stat0.x);
      top = max(top, stat1.x);
      top = max(top, stat2.x);
      top = max(top, stat3.x);
      top = max(top, stat4.x);
      top = max(top, stat5.x);
      top = max(top, stat6.x);
      top = max(top, stat7.x);
      top = max(top, stat8.x);
      top = max(top, stat9.x);
      top = max(top, stat10.x);
      top = max(top, stat11.x);
      top = max(top, stat12.x);
      top = max(top, stat13.x);
      top = max(top, stat14.x);
      top = max(top, stat15.x);
      var total = 0.0;
      var lo = vec4<f32>(0.0);
      var hi = vec4<f32>(0.0);
      {
        let share = exp(stat0.x - top);
        total = fma(stat0.y, share, total);
        lo = fma(lo0, vec4<f32>(share), lo);
        hi = fma(hi0, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat1.x - top);
        total = fma(stat1.y, share, total);
        lo = fma(lo1, vec4<f32>(share), lo);
        hi = fma(hi1, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat2.x - top);
        total = fma(stat2.y, share, total);
        lo = fma(lo2, vec4<f32>(share), lo);
        hi = fma(hi2, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat3.x - top);
        total = fma(stat3.y, share, total);
        lo = fma(lo3, vec4<f32>(share), lo);
        hi = fma(hi3, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat4.x - top);
        total = fma(stat4.y, share, total);
        lo = fma(lo4, vec4<f32>(share), lo);
        hi = fma(hi4, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat5.x - top);
        total = fma(stat5.y, share, total);
        lo = fma(lo5, vec4<f32>(share), lo);
        hi = fma(hi5, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat6.x - top);
        total = fma(stat6.y, share, total);
        lo = fma(lo6, vec4<f32>(share), lo);
        hi = fma(hi6, vec4<f32>(share), hi);
      }
      {
        let share = exp(stat7.x - top);
        total = fma(stat7.y, share, total);
        lo = fma(lo7, vec4<f32>(share), lo);
        hi = fma(hi7, vec4<f32>(share), hi);
      }
      if (8u < splits) {
        let at8 = (at + min(8u, splits - 1u)) * HEAD + quad % HEAD;
        let lo8 = parts[at8];
        let hi8 = parts[at8 + 1u];
        let at9 = (at + min(9u, splits - 1u)) * HEAD + quad % HEAD;
        let lo9 = parts[at9];
        let hi9 = parts[at9 + 1u];
        let at10 = (at + min(10u, splits - 1u)) * HEAD + quad % HEAD;
        let lo10 = parts[at10];
        let hi10 = parts[at10 + 1u];
        let at11 = (at + min(11u, splits - 1u)) * HEAD + quad % HEAD;
        let lo11 = parts[at11];
        let hi11 = parts[at11 + 1u];
        let at12 = (at + min(12u, splits - 1u)) * HEAD + quad % HEAD;
        let lo12 = parts[at12];
        let hi12 = parts[at12 + 1u];
        let at13 = (at + min(13u, splits - 1u)) * HEAD + quad % HEAD;
        let lo13 = parts[at13];
        let hi13 = parts[at13 + 1u];
        let at14 = (at + min(14u, splits - 1u)) * HEAD + quad % HEAD;
        let lo14 = parts[at14];
        let hi14 = parts[at14 + 1u];
        let at15 = (at + min(15u, splits - 1u)) * HEAD + quad % HEAD;
        let lo15 = parts[at15];
        let hi15 = parts[at15 + 1u];
        {
          let share = exp(stat8.x - top);
          total = fma(stat8.y, share, total);
          lo = fma(lo8, vec4<f32>(share), lo);
          hi = fma(hi8, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat9.x - top);
          total = fma(stat9.y, share, total);
          lo = fma(lo9, vec4<f32>(share), lo);
          hi = fma(hi9, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat10.x - top);
          total = fma(stat10.y, share, total);
          lo = fma(lo10, vec4<f32>(share), lo);
          hi = fma(hi10, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat11.x - top);
          total = fma(stat11.y, share, total);
          lo = fma(lo11, vec4<f32>(share), lo);
          hi = fma(hi11, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat12.x - top);
          total = fma(stat12.y, share, total);
          lo = fma(lo12, vec4<f32>(share), lo);
          hi = fma(hi12, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat13.x - top);
          total = fma(stat13.y, share, total);
          lo = fma(lo13, vec4<f32>(share), lo);
          hi = fma(hi13, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat14.x - top);
          total = fma(stat14.y, share, total);
          lo = fma(lo14, vec4<f32>(share), lo);
          hi = fma(hi14, vec4<f32>(share), hi);
        }
        {
          let share = exp(stat15.x - top);
          total = fma(stat15.y, share, total);
          lo = fma(lo15, vec4<f32>(share), lo);
          hi = fma(hi15, vec4<f32>(share), hi);
        }
      }
      let seen = splits > 0u;
      put_vec8(i / 64u, i % 64u, select(vec4<f32>(0.0), lo / total, seen), select(vec4<f32>(0.0), hi / total, seen));
    }
  }
  workgroupBarrier();
  for (var first = 0u; first < range; first += 4u * LANES) {
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
