// out[r, h] = W_h latent[r, h]: what attention over latents makes of the values of head h. W_h is the last
// VALUE of the NOPE + VALUE rows that head h has in kv_b_proj; latent is the first VEC8S of WIDTH.
//
// One workgroup per (head and GROUPS * $OUTS outputs, $ROWS rows). LANES invocations share $OUTS outputs:
// lane l sums k = 8 * (l + j * LANES) .. + 7 in order of j, one k after the other; the lanes are added
// in order of l. $ROWS does not enter.
// Slot:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).

//use weights

override HEADS: u32;
override NOPE: u32;
override VALUE: u32;
override VEC8S: u32; // of a latent
override WIDTH: u32; // of a latent row, a multiple of 8
override LANES: u32;
override GROUPS: u32; // of lanes in a workgroup
override BLOCKS: u32; // workgroups of a head

const SUMS = $OUTSu * $ROWSu;
const STRIDE = SUMS | 1u; // odd: invocations write to different banks

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, HEADS, WIDTH / 4]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, HEADS, VALUE]

var<workgroup> partial: array<f32, LANES * GROUPS * STRIDE>;

fn add8(sum: f32, lo: vec4<f32>, hi: vec4<f32>, w: Vec8) -> f32 {
  let a = fma(lo.w, w.lo.w, fma(lo.z, w.lo.z, fma(lo.y, w.lo.y, fma(lo.x, w.lo.x, sum))));
  return fma(hi.w, w.hi.w, fma(hi.z, w.hi.z, fma(hi.y, w.hi.y, fma(hi.x, w.hi.x, a))));
}

@compute @workgroup_size(LANES * GROUPS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = tile.x / BLOCKS;
  let count = arrayLength(&x) / (HEADS * WIDTH / 4u);
  let row = tile.y * $ROWSu;
  let lane = thread % LANES;
  let output = (tile.x % BLOCKS * GROUPS + thread / LANES) * $OUTSu;
  let first = head * (NOPE + VALUE) + NOPE;
  //for r in ROWS
  let x$r = (min(row + $ru, count - 1u) * HEADS + head) * (WIDTH / 4u);
  //for o in OUTS
  var sum$o_$r = 0.0;
  //end
  //end
  for (var j = lane; j < VEC8S; j += LANES * $AHEADu) {
    //for a in AHEAD
    let i$a = min(j + $au * LANES, VEC8S - 1u);
    //for o in OUTS
    let block$a_$o = load_block((first + min(output + $ou, VALUE - 1u)) * VEC8S + i$a);
    //end
    //end
    //for a in AHEAD
    if (j + $au * LANES < VEC8S) {
      //for o in OUTS
      let w$o = vec8_0(block$a_$o);
      //end
      //for r in ROWS
      {
        let lo = x[x$r + 2u * i$a];
        let hi = x[x$r + 2u * i$a + 1u];
        //for o in OUTS
        sum$o_$r = add8(sum$o_$r, lo, hi, w$o);
        //end
      }
      //end
    }
    //end
  }
  //for o in OUTS
  //for r in ROWS
  partial[thread * STRIDE + $ou * $ROWSu + $ru] = sum$o_$r;
  //end
  //end
  workgroupBarrier();
  for (var i = thread; i < GROUPS * SUMS; i += LANES * GROUPS) {
    let group = i / SUMS;
    var sum = 0.0;
    for (var l = 0u; l < LANES; l++) {
      sum += partial[(group * LANES + l) * STRIDE + i % SUMS];
    }
    let o = (tile.x % BLOCKS * GROUPS + group) * $OUTSu + i % SUMS / $ROWSu;
    let r = row + i % $ROWSu;
    if (o < VALUE && r < count) {
      out[(r * HEADS + head) * VALUE + o] = sum;
    }
  }
}
