// The partial results of each slice of a row of logits from which top_tokens.wgsl computes its softmax and its most
// probable columns. Of slice s of row r:
//   partials[r, s, 0]     = bits of (M, sum of exp(logit - M)), M the slice's largest logit
//   partials[r, s, 1 + i] = (key, column) of its i-th largest logit, i < TOP, see lib/argmax.wgsl
// A column is ranked by counting those before it. Columns past VOCAB have key 0, below every logit's.
//
// One workgroup per slice of a row.

//#import lib/partial_argmax
//#import lib/workgroup_partial
//#import lib/workgroup_sum

override VOCAB: u32;
override STRIDE: u32; // row stride of logits
override TOP: u32;
override LANES: u32;

alias Sum = f32;

var<workgroup> columns: array<Argmax, $SLICE>;

@group(0) @binding(0) var<storage, read> logits: array<f32>; // [rows, STRIDE]
@group(0) @binding(1) var<storage, read_write> partials: array<vec2<u32>>; // [rows, slices, 1 + TOP]

@compute @workgroup_size(LANES)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) tiles: vec3<u32>,
  @builtin(local_invocation_index) lane: u32,
) {
  let row = tile.y * STRIDE;
  let first = tile.x * $SLICEu;
  let count = min($SLICEu, VOCAB - first);
  var best = NO_ARGMAX;
  for (var i = lane; i < $SLICEu; i += LANES) {
    var column = Argmax(0u, first + i);
    if (i < count) {
      column = argmax_of(logits[row + first + i], first + i);
      best = better(best, column);
    }
    columns[i] = column;
  }
  let largest = logits[row + workgroup_joined(best, lane).y];
  var sum = 0.0;
  for (var i = lane; i < count; i += LANES) {
    sum += exp(logits[row + first + i] - largest);
  }
  sum = total(sum, lane);
  let at = (tile.y * tiles.x + tile.x) * (1u + TOP);
  if (lane == 0u) {
    partials[at] = vec2<u32>(bitcast<u32>(largest), bitcast<u32>(sum));
  }
  for (var i = lane; i < $SLICEu; i += LANES) {
    let own = columns[i];
    var rank = 0u;
    for (var j = 0u; j < $SLICEu && rank < TOP; j++) {
      rank += u32(before(columns[j], own));
    }
    if (rank < TOP) {
      partials[at + 1u + rank] = own;
    }
  }
}
