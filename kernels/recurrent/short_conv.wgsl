// A causal convolution of each column over a row and the TAPS - 1 rows of its slot before it:
// conv(u)[row] = sum over i of weight[i] u[row - TAPS + 1 + i].
//
// With GATED (LFM2) a row of `x` is B, C and v: out = C * conv(B * v). Otherwise (Gated DeltaNet) out = silu(conv(u)),
// u being the first COLS columns of `x`.
//
// With KEEPS it stores in the ring what it reads of each row: for forwards of so few rows that none overwrites one that
// is still read. Otherwise keep_rows.wgsl does so afterwards.
//
// Rows before the first of this forward are in the slot's ring, by their positions modulo RING. Those before position 0
// are zeros. Padding gives zeros.
//
// With TREE rows are nodes of trees, and the rows before one are its ancestors. The ring keeps them by their cells;
// once they are accepted, move_kept.wgsl moves them to their positions.
//
// One invocation per (column, BLOCK rows): it reuses what one row reads for the next, if both are of the same slot.

//#import lib/slot_rows
//#import lib/conv_input
//#import lib/path

override RING: u32; // rows

const TAPS = $TAPSu;
const BLOCK = $BLOCKu;

@group(0) @binding(2) var<storage, read> weight: array<f32>; // [COLS, TAPS], the oldest row's first
//#if KEEPS
@group(0) @binding(3) var<storage, read_write> ring: array<f32>; // [slots, RING, COLS]
//#else
@group(0) @binding(3) var<storage, read> ring: array<f32>; // [slots, RING, COLS]
//#endif
@group(0) @binding(4) var<storage, read_write> out: array<f32>; // [rows, COLS]

// How many rows before `own` the row is that is `back` positions before it, if this forward has that row.
fn rows_back(own: Row, back: u32) -> u32 {
  //#if TREE
  return own.cell - physical(own, own.position - back);
  //#else
  return back;
  //#endif
}

// The input of the row of the same slot that is `back` positions before row `row`; 0 before position 0.
fn before(row: u32, back: u32, col: u32) -> f32 {
  let own = rows[row];
  if (back > own.position) {
    return 0.0;
  }
  let distance = rows_back(own, back);
  if (distance <= row && same_slot(row, row - distance, row + 1u)) {
    return convolved(row - distance, col);
  }
  return ring[(own.slot * RING + (own.position - back) % RING) * COLS + col];
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let col = id.x;
  let first = id.y * BLOCK;
  if (col >= COLS) {
    return;
  }
  let count = arrayLength(&x) / X_COLS;
  // All loads are issued before the first is waited for.
  //#for r in BLOCK
  let own$r = convolved(min(first + $ru, count - 1u), col);
  //#endfor
  //#for i in TAPS
  let weight$i = weight[col * TAPS + $iu];
  var read$i = 0.0; // of the row TAPS - 1 - i before
  //#endfor
  //#for r in BLOCK
  if (first + $ru < count) {
    let row = first + $ru;
    let own = rows[row];
    if (own.live == 0u) {
      out[row * COLS + col] = 0.0;
    } else {
      if ($ru > 0u && same_slot(row, row - 1u, count) && rows_back(own, 1u) == 1u) {
        //#for i in BEFORE
        read$i = read$(i + 1);
        //#endfor
      } else {
        //#for i in BEFORE
        read$i = before(row, TAPS - 1u - $iu, col);
        //#endfor
      }
      read$BEFORE = own$r;
      var sum = 0.0;
      //#for i in TAPS
      sum = fma(weight$i, read$i, sum);
      //#endfor
      //#if KEEPS
      ring[(own.slot * RING + kept_number(own) % RING) * COLS + col] = own$r;
      //#endif
      //#if GATED
      out[row * COLS + col] = x[row * X_COLS + COLS + col] * sum;
      //#else
      out[row * COLS + col] = sum / (1.0 + exp(-sum));
      //#endif
    }
  }
  //#endfor
}
