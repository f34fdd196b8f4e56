// Keys and values of a slot as f16 numbers for chunk_units.wgsl, in order of the cells and of the head:
// x = (hi + lo) / scale, the scale a power of two that the row's largest number decides; of 16 bits hi alone.
//
// One workgroup per (key-value head, $CELLS cells): WIDE invocations bring a row, two vec8s each. Cells behind the last
// one that some row sees are those of the last; what no row sees otherwise is not written. Slot:
//   kv_load: as of attention/attention.wgsl.

enable f16;
enable subgroups;
diagnostic(off, subgroup_uniformity);

//use fragments/rows
//use attention/visible
//use attention_units/power
//use attention_units/row_scale
//use kv_load

override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override COUNT: u32; // rows, all of one slot
override ROOM: u32; // cells of a head in `k_halves` and `v_halves`

const CELLS = $CELLSu; // of a split
const THREADS = $THREADSu;
const STAGE = $STAGEu; // cells whose values are side by side, dim by dim
const WIDE = $WIDEu;
const BROUGHT = THREADS / WIDE; // rows at a time
const NUMBERS = $(1 + KV_LOW)u; // f16 numbers of each
const KV_LOW = $KV_LOWu;

@group(0) @binding(0) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(1) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [COUNT]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> k_halves: array<vec4<u32>>; // [KV_HEADS, ROOM, NUMBERS, VEC8S], eight f16
@group(0) @binding(5) var<storage, read_write> v_halves: array<vec4<u32>>; // [KV_HEADS, ROOM / STAGE, NUMBERS, 8 VEC8S, STAGE / 8]
@group(0) @binding(6) var<storage, read_write> units: array<f32>; // [2, KV_HEADS, ROOM]: 1 / scale of keys, log2 of it of values

var<workgroup> bounds: array<atomic<u32>, 3>; // the slot, ~ the first cell and one past the last that some row sees
var<workgroup> sight: vec3<u32>;

var<workgroup> scales: array<f32, CELLS>; // of values
var<workgroup> places: array<u32, CELLS>; // rows of keys and values

// The row of keys and of values where a cell is stored.
fn stored(slot: u32, kv_head: u32, cell: u32) -> u32 {
  return (pages[slot * TABLE_PAGES + cell / PAGE] * KV_HEADS + kv_head) * PAGE + cell % PAGE;
}

fn put_key(at: u32, x: vec4<f32>, y: vec4<f32>) {
  if (KV_LOW == 0u) {
    k_halves[at] = rounded_halves(x, y);
  } else {
    k_halves[at] = high_halves(x, y);
    k_halves[at + VEC8S] = low_halves(x, y);
  }
}

fn put_value(at: u32, x: vec4<f32>, y: vec4<f32>) {
  if (KV_LOW == 0u) {
    v_halves[at] = rounded_halves(x, y);
  } else {
    v_halves[at] = high_halves(x, y);
    v_halves[at + STAGE * VEC8S] = low_halves(x, y);
  }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  for (var r = thread; r < COUNT; r += THREADS) {
    let row = rows[r];
    if (row.live == 1u) {
      atomicMax(&bounds[0], row.slot);
      atomicMax(&bounds[1], ~visible_begin(row));
      atomicMax(&bounds[2], visible_end(row));
    }
  }
  workgroupBarrier();
  if (thread == 0u) {
    sight = vec3<u32>(atomicLoad(&bounds[0]), ~atomicLoad(&bounds[1]), atomicLoad(&bounds[2]));
  }
  let seen = workgroupUniformLoad(&sight);
  let first = tile.z * CELLS;
  if (first >= seen.z || first + CELLS <= seen.y) {
    return;
  }
  let i = thread % WIDE;
  let pair = 2u * min(i, VEC8S / 2u - 1u);
  //for u in LOADS
  let own$u = thread / WIDE + $uu * BROUGHT;
  let row$u = stored(seen.x, tile.x, min(first + own$u, seen.z - 1u));
  let kx$u = load_key(row$u, pair);
  let ky$u = load_key(row$u, pair + 1u);
  let vx$u = load_value(row$u, pair);
  let vy$u = load_value(row$u, pair + 1u);
  //end
  //for u in LOADS
  {
    let to = tile.x * ROOM + first + own$u;
    let at = to * NUMBERS * VEC8S + i;
    let x = vec8_of(kx$u);
    let y = vec8_of(ky$u);
    let scale = row_scale(x, y);
    if (i < VEC8S / 2u) {
      put_key(at, x.lo * scale, y.lo * scale);
      put_key(at + VEC8S / 2u, x.hi * scale, y.hi * scale);
    }
    let v_scale = row_scale(vec8_of(vx$u), vec8_of(vy$u));
    if (i == 0u) {
      units[to] = inverse(scale);
      units[KV_HEADS * ROOM + to] = exponent(inverse(v_scale));
      scales[own$u] = v_scale;
      places[own$u] = row$u;
    }
  }
  //end
  workgroupBarrier();
  for (var task = thread; task < CELLS / 8u * VEC8S; task += THREADS) {
    let cell = task / VEC8S * 8u;
    let eight = task % VEC8S;
    //for c in EIGHT
    let x$c = vec8_of(load_value(places[cell + $cu], eight));
    //end
    let a = vec4(scales[cell], scales[cell + 1u], scales[cell + 2u], scales[cell + 3u]);
    let b = vec4(scales[cell + 4u], scales[cell + 5u], scales[cell + 6u], scales[cell + 7u]);
    let stage = (tile.x * ROOM + first + cell) / STAGE * (STAGE / 8u * NUMBERS * 8u * VEC8S) + cell % STAGE / 8u;
    //for d in FOUR
    put_value(
      stage + (4u * eight + $du) * (STAGE / 8u),
      vec4(x0.lo[$d], x1.lo[$d], x2.lo[$d], x3.lo[$d]) * a,
      vec4(x4.lo[$d], x5.lo[$d], x6.lo[$d], x7.lo[$d]) * b,
    );
    put_value(
      stage + (4u * VEC8S + 4u * eight + $du) * (STAGE / 8u),
      vec4(x0.hi[$d], x1.hi[$d], x2.hi[$d], x3.hi[$d]) * a,
      vec4(x4.hi[$d], x5.hi[$d], x6.hi[$d], x7.hi[$d]) * b,
    );
    //end
  }
}
