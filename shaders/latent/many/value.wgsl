// out[r, h] = W_h latent[r, h] of many rows: what latent_value.wgsl computes, every sum in its order.
//
// One workgroup per (head and $OUTS outputs, $ROWS rows); an invocation has $TR rows by $TO outputs. Output by
// output: chain l of CHAINS sums k = 8 * (l + j * CHAINS) .. + 7 in order of j, one k after the other, and the
// chains are added in order of l. A stage brings $DEPTH eights of each of $HELD chains into workgroup memory as
// floats, while the one before is summed.
// Slot:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).

//use weights

override HEADS: u32;
override NOPE: u32;
override VALUE: u32;
override BLOCKS: u32; // workgroups of a head
override WIDTH: u32; // of a latent row, a multiple of 8

const CHAINS = $CHAINSu;
const VEC8S = $VEC8Su; // of a latent
const ROWS = $ROWSu;
const OUTS = $OUTSu;
const THREADS = $THREADSu;
const WIDE = $WIDEu; // invocations side by side along outputs
const TALL = THREADS / WIDE; // along rows
const HELD = $HELDu; // chains of a stage
const DEPTH = $DEPTHu; // eights of each
const STAGES = $STAGESu; // of a chain
const EIGHTS = HELD * DEPTH; // of a stage
const FOURS = 2u * DEPTH; // of a chain
const PITCH = 2u * EIGHTS + 1u; // odd: rows begin in different banks

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, HEADS, WIDTH / 4]
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, HEADS, VALUE]

var<workgroup> mixed: array<vec4<f32>, ROWS * PITCH>;
var<workgroup> matrix: array<vec4<f32>, OUTS * PITCH>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = tile.x / BLOCKS;
  let first_out = tile.x % BLOCKS * OUTS;
  let first_row = tile.y * ROWS;
  let count = arrayLength(&x) / (HEADS * WIDTH / 4u);
  // Neighbours bring neighbouring chains, of which the memory has neighbouring eights.
  let four = thread % (2u * EIGHTS);
  let four_chain = four / 2u % HELD;
  let four_depth = four / 2u / HELD;
  let four_to = four_chain * FOURS + 2u * four_depth + four % 2u;
  //for u in X_LOADS
  let row$u = (thread + $uu * THREADS) / (2u * EIGHTS);
  let x$u = (min(first_row + row$u, count - 1u) * HEADS + head) * (WIDTH / 4u);
  var packed$u = vec4<f32>();
  //end
  let eight_chain = thread % HELD;
  let eight_depth = thread % EIGHTS / HELD;
  let eight_to = eight_chain * FOURS + 2u * eight_depth;
  //for u in W_LOADS
  let out$u = (thread + $uu * THREADS) / EIGHTS;
  let w$u = (head * (NOPE + VALUE) + NOPE + min(first_out + out$u, VALUE - 1u)) * VEC8S;
  var block$u: PackedBlock;
  //end
  let wide = thread % WIDE;
  let tall = thread / WIDE;
  //for r in TR
  //for o in TO
  var sum$r_$o = 0.0;
  var whole$r_$o = 0.0;
  //end
  //end

  for (var stage = 0u; stage <= CHAINS / HELD * STAGES; stage++) {
    if (stage > 0u) {
      workgroupBarrier(); // what is read of the stage before
      let last = stage - 1u;
      let four_there = last / STAGES * HELD + four_chain
        + (last % STAGES * DEPTH + four_depth) * CHAINS < VEC8S;
      //for u in X_LOADS
      if (($uu + 1u) * THREADS <= ROWS * 2u * EIGHTS || row$u < ROWS) {
        mixed[row$u * PITCH + four_to] = select(vec4<f32>(), packed$u, four_there);
      }
      //end
      let eight_there = last / STAGES * HELD + eight_chain
        + (last % STAGES * DEPTH + eight_depth) * CHAINS < VEC8S;
      //for u in W_LOADS
      if (($uu + 1u) * THREADS <= OUTS * EIGHTS || out$u < OUTS) {
        let w = vec8_0(block$u);
        matrix[out$u * PITCH + eight_to] = select(vec4<f32>(), w.lo, eight_there);
        matrix[out$u * PITCH + eight_to + 1u] = select(vec4<f32>(), w.hi, eight_there);
      }
      //end
      workgroupBarrier();
    }
    if (stage < CHAINS / HELD * STAGES) {
      let chain = stage / STAGES * HELD;
      let first = stage % STAGES * DEPTH;
      let at = min(chain + four_chain + (first + four_depth) * CHAINS, VEC8S - 1u);
      //for u in X_LOADS
      packed$u = x[x$u + 2u * at + four % 2u];
      //end
      let own = min(chain + eight_chain + (first + eight_depth) * CHAINS, VEC8S - 1u);
      //for u in W_LOADS
      block$u = load_block(w$u + own);
      //end
    }
    if (stage > 0u) {
      for (var held = 0u; held < HELD; held++) {
        for (var f = held * FOURS; f < (held + 1u) * FOURS; f++) {
          //for r in TR
          let a$r = mixed[(tall + $ru * TALL) * PITCH + f];
          //end
          //for o in TO
          {
            let b = matrix[(wide + $ou * WIDE) * PITCH + f];
            //for k in FOUR
            //for r in TR
            sum$r_$o = fma(a$r[$k], b[$k], sum$r_$o);
            //end
            //end
          }
          //end
        }
        if (stage % STAGES == 0u) {
          //for r in TR
          //for o in TO
          whole$r_$o += sum$r_$o;
          sum$r_$o = 0.0;
          //end
          //end
        }
      }
    }
  }

  //for r in TR
  {
    let row = first_row + tall + $ru * TALL;
    //for o in TO
    {
      let o = first_out + wide + $ou * WIDE;
      if (row < count && o < VALUE) {
        out[(row * HEADS + head) * VALUE + o] = whole$r_$o;
      }
    }
    //end
  }
  //end
}
