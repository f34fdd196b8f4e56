// out[r, h] = W_h latent[r, h]: values of head h of the weighted sums of latents (MLA). W_h is the last VALUE of the
// NOPE + VALUE rows that head h has in kv_b_proj. With MERGED the sums are in `x`; otherwise they are still in runs of
// cells, of few rows, and every workgroup of a head merges them for its row (lib/latent_runs.wgsl).
//
// One workgroup per (head and GROUPS * $OUTS outputs, $ROWS rows). LANES invocations share $OUTS outputs:
// lane l sums k = 8 * (l + j * LANES) .. + 7 in order of j, one k after the other; the lanes are added
// in order of l. $ROWS does not enter.

//#import lib/reduce_scale
//#import lib/weights_$weights
//#import lib/add8
//#if !MERGED
//#import lib/latent_runs
//#endif

override HEADS: u32;
override NOPE: u32;
override VALUE: u32;
override VEC8S: u32; // of a latent
override BLOCKS: u32; // workgroups of a head
//#if MERGED
override WIDTH: u32; // of a latent row, a multiple of 8
//#else
override COUNT: u32; // rows
//#endif

const SHARERS = $SHARERSu; // lanes of an output
const GROUPS = $THREADSu / SHARERS; // of lanes in a workgroup
const SUMS = $OUTSu * $ROWSu;
const STRIDE = SUMS | 1u; // odd: invocations write to different banks

//#if MERGED
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>; // [rows, HEADS, WIDTH / 4]
//#endif
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, HEADS, VALUE]

var<workgroup> partial: array<array<array<f32, STRIDE>, SHARERS>, GROUPS>;
//#if REDUCES_SCALE
var<workgroup> peaks: array<atomic<u32>, $ROWSu>; // bits of the largest size of a row
//#endif

//#if MERGED
fn row_count() -> u32 {
  return arrayLength(&x) / (HEADS * WIDTH / 4u);
}

fn merge_runs(query: u32, row: u32, thread: u32) {}

// Four elements of the weighted sum of a query.
fn latent_four(query: u32, i: u32) -> vec4<f32> {
  return x[query * (WIDTH / 4u) + i];
}
//#else
var<workgroup> whole: array<vec4<f32>, RANK4>; // the weighted sum of the only row

fn row_count() -> u32 {
  return COUNT;
}

// Puts the weighted sum of a query into `whole`.
fn merge_runs(query: u32, row: u32, thread: u32) {
  let own = rows[FIRST_ROW + row];
  let seen = visible_end(own) > 0u;
  for (var first = 0u; first < RANK4; first += QUADS) {
    add_runs(query, own, first, thread);
    if (thread < QUADS && first + thread < RANK4) {
      whole[first + thread] = select(vec4<f32>(0.0), weighted(thread), seen);
    }
    workgroupBarrier();
  }
}

// Four elements of the weighted sum of a query.
fn latent_four(query: u32, i: u32) -> vec4<f32> {
  return whole[i];
}
//#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let head = tile.x / BLOCKS;
  let count = row_count();
  let row = tile.y * $ROWSu;
  let lane = thread % SHARERS;
  let output = (tile.x % BLOCKS * GROUPS + thread / SHARERS) * $OUTSu;
  let first = head * (NOPE + VALUE) + NOPE;
  //#for o in OUTS
  let weights$o = (first + min(output + $ou, VALUE - 1u)) * VEC8S;
  //#endfor
  //#for r in ROWS
  let query$r = min(row + $ru, count - 1u) * HEADS + head;
  //#for o in OUTS
  var sum$o_$r = 0.0;
  //#endfor
  //#endfor
  // Weights are loaded before the runs are merged: the waits are shared.
  //#if EARLY
  //#for a in AHEAD
  //#for o in OUTS
  var block$a_$o = load_block(weights$o + min(lane + $au * SHARERS, VEC8S - 1u));
  //#endfor
  //#endfor
  //#endif
  merge_runs(query0, row, thread);
  for (var j = lane; j < VEC8S; j += SHARERS * $AHEADu) {
    //#if EARLY
    if (VEC8S > SHARERS * $AHEADu && j > lane) {
      //#for a in AHEAD
      //#for o in OUTS
      block$a_$o = load_block(weights$o + min(j + $au * SHARERS, VEC8S - 1u));
      //#endfor
      //#endfor
    }
    //#else
    //#for o in OUTS
    let block0_$o = load_block(weights$o + j);
    //#endfor
    //#endif
    //#for a in AHEAD
    if (j + $au * SHARERS < VEC8S) {
      let i = j + $au * SHARERS;
      //#for o in OUTS
      let w$o = vec8_0(block$a_$o);
      //#endfor
      //#for r in ROWS
      {
        let lo = latent_four(query$r, 2u * i);
        let hi = latent_four(query$r, 2u * i + 1u);
        //#for o in OUTS
        sum$o_$r = add8(sum$o_$r, lo, hi, w$o);
        //#endfor
      }
      //#endfor
    }
    //#endfor
  }
  //#for o in OUTS
  //#for r in ROWS
  partial[thread / SHARERS][lane][$(o * ROWS + r)] = sum$o_$r;
  //#endfor
  //#endfor
  workgroupBarrier();
  for (var i = thread; i < GROUPS * SUMS; i += $THREADSu) {
    let group = i / SUMS;
    var sum = 0.0;
    //#for l in SHARERS
    sum += partial[group][$l][i % SUMS];
    //#endfor
    let o = (tile.x % BLOCKS * GROUPS + group) * $OUTSu + i % SUMS / $ROWSu;
    let r = row + i % $ROWSu;
    if (o < VALUE && r < count) {
      out[(r * HEADS + head) * VALUE + o] = sum;
      //#if REDUCES_SCALE
      atomicMax(&peaks[i % $ROWSu], bitcast<u32>(abs(sum)));
      //#endif
    }
  }
  //#if REDUCES_SCALE
  workgroupBarrier();
  if (thread < $ROWSu && row + thread < count) {
    reduce_scale(row + thread, vec4<f32>(bitcast<f32>(atomicLoad(&peaks[thread])), 0.0, 0.0, 0.0));
  }
  //#endif
}
