// Keys and values of a slot as f16 numbers for chunk_units.wgsl, in order of the cells and of the head:
// x = (hi + lo) / scale (lib/f16_rows.wgsl); keys and values of 16 bits have hi alone.
//
// One workgroup per (key-value head, $CELLS cells): WIDE invocations load a row, two vec8s each. Cells behind the last
// cell that some row sees get the numbers of that one; splits of which no row sees a cell are not written.

enable f16;
enable subgroups;
diagnostic(off, subgroup_uniformity);

//#import lib/rows
//#import lib/visible
//#import lib/powers_of_two
//#import lib/f16_rows
//#import lib/kv_load

override KV_HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override COUNT: u32; // rows, all of one slot
override ROOM: u32; // cells of a head in `k_halves` and `v_halves`

const CELLS = $CELLSu; // of a split
const THREADS = $THREADSu;
const WIDE = $WIDEu;
const LOADED = THREADS / WIDE; // rows that are loaded at a time
const NUMBERS = $(1 + KV_LOW)u; // f16 numbers of each
const KV_LOW = $KV_LOWu;

@group(0) @binding(0) var<storage, read> keys: array<vec4<u32>>; // [pages, KV_HEADS, PAGE], rows of a dtype
@group(0) @binding(1) var<storage, read> values: array<vec4<u32>>; // as keys
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [COUNT]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
// [KV_HEADS, ROOM, NUMBERS, VEC8S], eight f16
@group(0) @binding(4) var<storage, read_write> k_halves: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read_write> v_halves: array<vec4<u32>>; // as k_halves
// [2, KV_HEADS, ROOM]: of each cell 1 / scale of its key, then log2(1 / scale) of its value
@group(0) @binding(6) var<storage, read_write> units: array<f32>;

var<workgroup> bounds: array<atomic<u32>, 3>; // the slot, ~ the first cell and one past the last that some row sees
var<workgroup> sight: vec3<u32>;

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
  //#for u in LOADS
  let cell$u = first + thread / WIDE + $uu * LOADED;
  let from$u = min(cell$u, seen.z - 1u);
  let row$u = (pages[seen.x * TABLE_PAGES + from$u / PAGE] * KV_HEADS + tile.x) * PAGE + from$u % PAGE;
  let kx$u = load_key(row$u, pair);
  let ky$u = load_key(row$u, pair + 1u);
  let vx$u = load_value(row$u, pair);
  let vy$u = load_value(row$u, pair + 1u);
  //#endfor
  //#for u in LOADS
  {
    let to = tile.x * ROOM + cell$u;
    let at = to * NUMBERS * VEC8S + i;
    {
      let x = vec8_of(kx$u);
      let y = vec8_of(ky$u);
      let scale = row_scale(x, y);
      if (i < VEC8S / 2u) {
        if (KV_LOW == 0u) {
          k_halves[at] = packed(x.lo * scale, y.lo * scale);
          k_halves[at + VEC8S / 2u] = packed(x.hi * scale, y.hi * scale);
        } else {
          k_halves[at] = high_halves(x.lo * scale, y.lo * scale);
          k_halves[at + VEC8S / 2u] = high_halves(x.hi * scale, y.hi * scale);
          k_halves[at + VEC8S] = low_halves(x.lo * scale, y.lo * scale);
          k_halves[at + VEC8S + VEC8S / 2u] = low_halves(x.hi * scale, y.hi * scale);
        }
      }
      if (i == 0u) {
        units[to] = inverse(scale);
      }
    }
    {
      let x = vec8_of(vx$u);
      let y = vec8_of(vy$u);
      let scale = row_scale(x, y);
      if (i < VEC8S / 2u) {
        if (KV_LOW == 0u) {
          v_halves[at] = packed(x.lo * scale, y.lo * scale);
          v_halves[at + VEC8S / 2u] = packed(x.hi * scale, y.hi * scale);
        } else {
          v_halves[at] = high_halves(x.lo * scale, y.lo * scale);
          v_halves[at + VEC8S / 2u] = high_halves(x.hi * scale, y.hi * scale);
          v_halves[at + VEC8S] = low_halves(x.lo * scale, y.lo * scale);
          v_halves[at + VEC8S + VEC8S / 2u] = low_halves(x.hi * scale, y.hi * scale);
        }
      }
      if (i == 0u) {
        units[KV_HEADS * ROOM + to] = exponent(inverse(scale));
      }
    }
  }
  //#endfor
}
