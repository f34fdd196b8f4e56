// Moves what recurrent layers keep of the accepted rows of trees, which is stored by their cells, to the places of
// their positions, in every buffer: rows of the rings of short_conv.wgsl, or with STEPS the steps of delta_rule.wgsl.
// Accepted rows are in order, and each is stored at the place of its position or behind it, so moving them one by one
// overwrites nothing that is still to be moved.
//
// One invocation per word of a row and sequence, for all kept rows of it.

//#import lib/rows

override ROWS: u32; // verify rows a sequence
override KEPT_ROWS: u32; // extend rows a sequence
override KEPT: u32; // where the kept rows begin in `last`
override WORDS: u32; // of a row of a ring, or of a step
override PLACES: u32; // of a ring, or for steps
//#if STEPS
override HEADS: u32;
override PARTS: u32; // headers of a head
//#endif

@group(0) @binding(5) var<storage, read> extend: array<Row>; // [batch * KEPT_ROWS], at their logical cells
@group(0) @binding(6) var<storage, read> last: array<u32>; // from KEPT on: verify row of each extend row
//#for n in BUFFERS
//#if STEPS
// [slots]: [HEADS, PARTS, 4], the third word: which place has the steps; [HEADS, 2, PLACES, WORDS]
//#else
// [slots, PLACES, WORDS]
//#endif
@group(0) @binding($n) var<storage, read_write> kept$n: array<f32>;
//#endfor

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let first = id.y * KEPT_ROWS;
  let slot = extend[first].slot;
  //#if STEPS
  if (id.x >= HEADS * WORDS) {
    return;
  }
  let head = id.x / WORDS;
  let of_slot = slot * HEADS * (4u * PARTS + 2u * PLACES * WORDS);
  //#for n in BUFFERS
  let place$n = 2u * head + u32(kept$n[of_slot + 4u * PARTS * head + 2u]);
  let from$n = of_slot + 4u * PARTS * HEADS + place$n * PLACES * WORDS + id.x % WORDS;
  //#endfor
  //#else
  if (id.x >= WORDS) {
    return;
  }
  //#for n in BUFFERS
  let from$n = slot * PLACES * WORDS + id.x;
  //#endfor
  //#endif
  for (var j = 1u; j < KEPT_ROWS; j++) {
    let row = extend[first + j];
    if (row.live == 0u) {
      return;
    }
    let offset = last[KEPT + first + j] - id.y * ROWS; // from the pending token's cell
    let source = (row.cell - j + offset) % PLACES * WORDS;
    let to = row.cell % PLACES * WORDS;
    if (offset == j) {
      continue;
    }
    //#for n in BUFFERS
    kept$n[from$n + to] = kept$n[from$n + source];
    //#endfor
  }
}
