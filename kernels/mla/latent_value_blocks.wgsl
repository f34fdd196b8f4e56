// out[r, h] = W_h latent[r, h] of many rows: the values of head h (MLA), to the bit those of latent_value.wgsl. W_h is
// the last VALUE of the NOPE + VALUE rows that head h has in kv_b_proj.
//
// One workgroup per (head and $OUTS outputs, $ROWS rows); an invocation has $TR rows by $TO outputs. Output by
// output: chain l of CHAINS sums k = 8 * (l + j * CHAINS) .. + 7 in order of j, one k after the other, and the
// chains are added in order of l. A stage loads $DEPTH vec8s of a chain into workgroup memory as floats, while
// the one before is summed.

//#import lib/weights_$weights

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
const DEPTH = $DEPTHu; // vec8s of a stage
const STAGES = $STAGESu; // of a chain
const FOURS = 2u * DEPTH;
const PITCH = FOURS + 1u; // odd: rows begin in different banks

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
  let depth = thread % DEPTH;
  //#for u in X_LOADS
  let x$u = (min(first_row + (thread + $uu * THREADS) / DEPTH, count - 1u) * HEADS + head) * (WIDTH / 4u);
  var lo$u = vec4<f32>();
  var hi$u = vec4<f32>();
  //#endfor
  //#for u in W_LOADS
  let w$u = (head * (NOPE + VALUE) + NOPE
    + min(first_out + (thread + $uu * THREADS) / DEPTH, VALUE - 1u)) * VEC8S;
  var block$u: PackedBlock;
  //#endfor
  let wide = thread % WIDE;
  let tall = thread / WIDE;
  //#for r in TR
  //#for o in TO
  var sum$r_$o = 0.0;
  var whole$r_$o = 0.0;
  //#endfor
  //#endfor

  var there = false; // what is loaded next is in the matrix
  for (var stage = 0u; stage <= CHAINS * STAGES; stage++) {
    if (stage > 0u) {
      workgroupBarrier(); // after all reads of the stage before
      //#for u in X_LOADS
      if (($uu + 1u) * THREADS <= ROWS * DEPTH || thread + $uu * THREADS < ROWS * DEPTH) {
        let to = (thread + $uu * THREADS) / DEPTH * PITCH + 2u * depth;
        mixed[to] = select(vec4<f32>(), lo$u, there);
        mixed[to + 1u] = select(vec4<f32>(), hi$u, there);
      }
      //#endfor
      //#for u in W_LOADS
      if (($uu + 1u) * THREADS <= OUTS * DEPTH || thread + $uu * THREADS < OUTS * DEPTH) {
        let to = (thread + $uu * THREADS) / DEPTH * PITCH + 2u * depth;
        let w = vec8_0(block$u);
        matrix[to] = select(vec4<f32>(), w.lo, there);
        matrix[to + 1u] = select(vec4<f32>(), w.hi, there);
      }
      //#endfor
      workgroupBarrier();
    }
    if (stage < CHAINS * STAGES) {
      let vec8 = stage / STAGES + (stage % STAGES * DEPTH + depth) * CHAINS;
      there = vec8 < VEC8S;
      let at = min(vec8, VEC8S - 1u);
      //#for u in X_LOADS
      lo$u = x[x$u + 2u * at];
      hi$u = x[x$u + 2u * at + 1u];
      //#endfor
      //#for u in W_LOADS
      block$u = load_block(w$u + at);
      //#endfor
    }
    if (stage > 0u) {
      let rows_at = tall * PITCH;
      let outs_at = wide * PITCH;
      for (var f = 0u; f < FOURS; f++) {
        //#for r in TR
        let a$r = mixed[rows_at + $ru * TALL * PITCH + f];
        //#endfor
        //#for o in TO
        {
          let b = matrix[outs_at + $ou * WIDE * PITCH + f];
          //#for k in 4
          //#for r in TR
          sum$r_$o = fma(a$r[$k], b[$k], sum$r_$o);
          //#endfor
          //#endfor
        }
        //#endfor
      }
      if (stage % STAGES == 0u) {
        //#for r in TR
        //#for o in TO
        whole$r_$o += sum$r_$o;
        sum$r_$o = 0.0;
        //#endfor
        //#endfor
      }
    }
  }

  //#for r in TR
  {
    let row = first_row + tall + $ru * TALL;
    //#for o in TO
    {
      let o = first_out + wide + $ou * WIDE;
      if (row < count && o < VALUE) {
        out[(row * HEADS + head) * VALUE + o] = whole$r_$o;
      }
    }
    //#endfor
  }
  //#endfor
}
