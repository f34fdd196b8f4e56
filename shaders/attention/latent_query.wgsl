// Queries of multi-head latent attention over the latents themselves ("absorbed"): with keys
// k = W_h latent, q_n . k = (W_h^T q_n) . latent, so
//   out[r, h] = [W_h^T q_n[r, h]; rope(q_r[r, h])], q[r, h] = [q_n; q_r].
// W_h is the first NOPE of the NOPE + VALUE rows that head h has in kv_b_proj.
//
// One workgroup per (head, $ROWS rows). Invocation (part p, vec8 e) sums columns 8e .. 8e + 7 over
// the rows p, p + PARTS, ... of W_h; the parts are added in order. $ROWS does not enter.
// Slot:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).

//use weights
//use attention/latent_rope

override HEADS: u32;
override NOPE: u32;
override VALUE: u32;
override VEC8S: u32; // of a latent
override PARTS: u32;

@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, HEADS, 8 VEC8S + ROPE]

var<workgroup> partial: array<vec4<f32>, 2u * VEC8S * PARTS>;

@compute @workgroup_size(VEC8S * PARTS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = tile.x;
  let count = arrayLength(&x) / (HEADS * (NOPE + ROPE));
  let row = tile.y * $ROWSu;
  let e = thread % VEC8S;
  //for r in ROWS
  let q$r = (min(row + $ru, count - 1u) * HEADS + head) * (NOPE + ROPE);
  var lo$r = vec4<f32>(0.0);
  var hi$r = vec4<f32>(0.0);
  //end
  for (var i = thread / VEC8S; i < NOPE; i += PARTS) {
    let w = vec8_0(load_block((head * (NOPE + VALUE) + i) * VEC8S + e));
    //for r in ROWS
    {
      let own = vec4<f32>(x[q$r + i]);
      lo$r = fma(own, w.lo, lo$r);
      hi$r = fma(own, w.hi, hi$r);
    }
    //end
  }
  //for r in ROWS
  partial[2u * thread] = lo$r;
  partial[2u * thread + 1u] = hi$r;
  workgroupBarrier();
  if (row + $ru < count) {
    let to = ((row + $ru) * HEADS + head) * (8u * VEC8S + ROPE);
    for (var i = thread; i < 2u * VEC8S; i += VEC8S * PARTS) {
      var sum = vec4<f32>(0.0);
      for (var p = 0u; p < PARTS; p++) {
        sum += partial[2u * VEC8S * p + i];
      }
      out[to + 4u * i] = sum.x;
      out[to + 4u * i + 1u] = sum.y;
      out[to + 4u * i + 2u] = sum.z;
      out[to + 4u * i + 3u] = sum.w;
    }
    for (var j = thread; j < ROPE; j += VEC8S * PARTS) {
      out[to + 8u * VEC8S + j] = turned(q$r + NOPE, j, rows[row + $ru].position);
    }
  }
  workgroupBarrier();
  //end
}
