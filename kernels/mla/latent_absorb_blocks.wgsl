// out[r, h] = W_h^T q_n[r, h] of many rows: the absorbed queries of head h (MLA), to the bit those of
// latent_prepare.wgsl.
//
// One workgroup per (head and $COLS columns, $ROWS rows); an invocation has $TR rows by $TC fours of columns. Column
// by column: chain p of CHAINS sums the rows i = p, p + CHAINS, ... of W_h, the first NOPE of the NOPE + VALUE rows
// that head h has in kv_b_proj, and the chains are added in order of p. All of q_n is in workgroup
// memory, chain by chain; a stage loads $STEPS rows of a chain, while the one before is summed.

//#import lib/weights_$weights

override HEADS: u32;
override NOPE: u32; // it, ROPE and X_COLS are multiples of 4
override ROPE: u32;
override VALUE: u32;
override X_COLS: u32; // of a row of x, which begins with q of all heads
override BLOCKS: u32; // workgroups of a head
override WIDTH: u32; // of a row of out, a multiple of 8

const CHAINS = $CHAINSu;
const VEC8S = $VEC8Su; // of a latent
const ROWS = $ROWSu;
const COL4S = $COLSu / 4u;
const THREADS = $THREADSu;
const WIDE = $WIDEu; // invocations side by side along columns
const TALL = THREADS / WIDE; // along rows
const STEPS = $STEPSu; // of a chain, a multiple of 4
const FOURS = STEPS / 4u; // of q, of a chain
const STAGED = $STAGEDu; // steps of a stage, a multiple of 4
const STAGES = STEPS / STAGED; // of a chain
const PITCH = 4u * FOURS + 1u; // odd: rows begin in different banks

@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, WIDTH / 4]

var<workgroup> queries: array<vec4<f32>, ROWS * PITCH>;
var<workgroup> matrix: array<vec4<f32>, STAGED * COL4S>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = tile.x / BLOCKS;
  let first_col = tile.x % BLOCKS * (COL4S / 2u); // vec8
  let first_row = tile.y * ROWS;
  let count = arrayLength(&x) / (X_COLS / 4u);
  let vec8 = thread % (COL4S / 2u);
  let e = min(first_col + vec8, VEC8S - 1u);
  let first_w = head * (NOPE + VALUE);
  //#for u in W_LOADS
  let step$u = (thread + $uu * THREADS) / (COL4S / 2u);
  var block$u = load_block((first_w + min(step$u * CHAINS, NOPE - 1u)) * VEC8S + e);
  //#endfor
  let wide = thread % WIDE;
  let tall = thread / WIDE;
  //#for r in TR
  //#for c in TC
  var whole$r_$c = vec4<f32>();
  //#endfor
  //#endfor

  //#for r in TR
  //#for c in TC
  var sum$r_$c = vec4<f32>();
  //#endfor
  //#endfor
  for (var stage = 0u; stage < CHAINS * STAGES; stage++) {
    workgroupBarrier(); // after all reads of the stage before
    if (stage % (4u * STAGES) == 0u) {
      // An invocation loads four steps of four neighbouring chains.
      for (var n = thread; n < ROWS * FOURS; n += THREADS) {
        let i = n % FOURS * 4u * CHAINS + stage / STAGES;
        let from_row = min(first_row + n / FOURS, count - 1u);
        let query = (from_row * X_COLS + head * (NOPE + ROPE)) / 4u;
        //#for k in 4
        let x$k = x[query + min(i + $ku * CHAINS, NOPE - 4u) / 4u];
        //#endfor
        //#for p in 4
        queries[n / FOURS * PITCH + $pu * FOURS + n % FOURS] = vec4<f32>(
          //#for k in 4
          select(0.0, x$k[$p], i + $ku * CHAINS < NOPE),
          //#endfor
        );
        //#endfor
      }
    }
    //#for u in W_LOADS
    if (($uu + 1u) * THREADS <= STAGED * COL4S / 2u || step$u < STAGED) {
      let w = vec8_0(block$u);
      matrix[step$u * COL4S + vec8] = w.lo;
      matrix[step$u * COL4S + vec8 + COL4S / 2u] = w.hi;
    }
    //#endfor
    workgroupBarrier();
    let next = min(stage + 1u, CHAINS * STAGES - 1u);
    //#for u in W_LOADS
    block$u = load_block(
      (first_w + min(next / STAGES + (next % STAGES * STAGED + step$u) * CHAINS, NOPE - 1u)) * VEC8S + e,
    );
    //#endfor
    let queries_at = tall * PITCH + stage / STAGES % 4u * FOURS + stage % STAGES * (STAGED / 4u);
    for (var f = 0u; f < STAGED / 4u; f++) {
      //#for r in TR
      let a$r = queries[queries_at + $ru * TALL * PITCH + f];
      //#endfor
      //#for k in 4
      //#for c in TC
      {
        let b = matrix[(4u * f + $ku) * COL4S + wide + $cu * WIDE];
        //#for r in TR
        sum$r_$c = fma(vec4<f32>(a$r[$k]), b, sum$r_$c);
        //#endfor
      }
      //#endfor
      //#endfor
    }
    if (stage % STAGES == STAGES - 1u) {
      //#for r in TR
      //#for c in TC
      whole$r_$c += sum$r_$c;
      sum$r_$c = vec4<f32>();
      //#endfor
      //#endfor
    }
  }

  //#for c in TC
  {
    // Lower halves of the vec8s of a workgroup lie before all upper ones.
    let four = wide + $cu * WIDE;
    let own = first_col + four % (COL4S / 2u);
    //#for r in TR
    {
      let row = first_row + tall + $ru * TALL;
      if (row < count && own < VEC8S) {
        out[(row * HEADS + head) * (WIDTH / 4u) + 2u * own + four / (COL4S / 2u)] = whole$r_$c;
      }
    }
    //#endfor
  }
  //#endfor
}
