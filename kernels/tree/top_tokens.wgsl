// The TOP most probable tokens of each row, most probable first:
//   out[place, i] = (token, bits of its probability)
//   token = column + offsets[column] (see draft_choose.wgsl), probability = exp(logit - M) / sum of exp(logit - M)
// Logits that are no numbers have probability 0: the target will not agree.
//
// The place is the row's number, or with SLOTS the slot of its sequence. Then the first of the tokens is also the
// slot's draft token 0, with which chains begin, and with CONFIDENCES its probability is the draft's confidence in it.
//
// One workgroup per row. The columns of a slice are in falling order, so ranking a column stops in each slice at the
// first that is behind it.

//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/workgroup_sum
//#if SLOTS
//#import lib/constants
//#import lib/drafts
//#endif

override SLICES: u32; // a row
override TOP: u32;
override LANES: u32;

alias Sum = f32;

@group(0) @binding(0) var<storage, read> partials: array<vec2<u32>>; // [rows, SLICES, 1 + TOP], see partial_top.wgsl
@group(0) @binding(1) var<storage, read> offsets: array<i32>; // [columns]
@group(0) @binding(2) var<storage, read_write> out: array<vec2<u32>>; // [places, TOP]
//#if SLOTS
@group(0) @binding(3) var<storage, read> batch_slots: array<u32>; // [rows] slot of each, or NO_SLOT
@group(0) @binding(4) var<storage, read_write> drafts: array<u32>; // [slots], see drafts.wgsl
//#endif

fn place_of(row: u32) -> u32 {
  //#if SLOTS
  return batch_slots[row];
  //#else
  return row;
  //#endif
}

fn store_first_draft(place: u32, token: u32, probability: f32) {
  //#if SLOTS
  drafts[draft_token(place, 0u)] = token;
  //#if CONFIDENCES
  drafts[draft_confidence(place, 0u)] = bitcast<u32>(probability);
  //#endif
  //#endif
}

@compute @workgroup_size(LANES)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
  let slices = tile.x * SLICES * (1u + TOP);
  var best = NO_ARGMAX;
  for (var s = lane; s < SLICES; s += LANES) {
    best = better(best, partials[slices + s * (1u + TOP) + 1u]);
  }
  let largest = logit_of(workgroup_joined(best, lane).x);
  var sum = 0.0;
  for (var s = lane; s < SLICES; s += LANES) {
    let slice = bitcast<vec2<f32>>(partials[slices + s * (1u + TOP)]);
    // A slice without a logit above minus infinity has a sum that is no number.
    sum += select(0.0, slice.y * exp(slice.x - largest), ordered(slice.x) > NOTHING);
  }
  sum = total(sum, lane);
  let to = place_of(tile.x);
  if (to == NO_SLOT) {
    return;
  }
  for (var i = lane; i < SLICES * TOP; i += LANES) {
    let own = partials[slices + i / TOP * (1u + TOP) + 1u + i % TOP];
    var rank = 0u;
    for (var s = 0u; s < SLICES && rank < TOP; s++) {
      for (var j = 0u; j < TOP; j++) {
        if (!before(partials[slices + s * (1u + TOP) + 1u + j], own)) {
          break;
        }
        rank++;
      }
    }
    if (rank < TOP) {
      let token = u32(i32(own.y) + offsets[own.y]);
      let probability = exp(logit_of(own.x) - largest) / sum;
      let sound = select(0.0, min(probability, 1.0), probability >= 0.0);
      out[to * TOP + rank] = vec2<u32>(token, bitcast<u32>(sound));
      if (rank == 0u) {
        store_first_draft(to, token, sound);
      }
    }
  }
}
