// A causal convolution of each column over a row and the TAPS - 1 rows of its slot before it:
// conv(u)[row] = sum over i of weight[i] u[row - TAPS + 1 + i].
//
// With GATED (LFM2) a row of `x` is B, C and v: out = C * conv(B * v). Otherwise (Gated DeltaNet) out = silu(conv(u)), u
// being the first COLS columns of `x`.
//
// With KEEPS it stores in the ring what it reads of each row: for forwards of so few rows that none takes the place of one
// that is read. Otherwise keep_rows.wgsl does afterwards.
//
// Rows before the first of this forward are in the slot's ring, by their positions modulo RING. Those before position 0
// are zeros. Padding gives zeros.
//
// One invocation per (column, row).

//#import lib/slot_rows
//#import lib/conv_input

override RING: u32; // rows

const TAPS = $TAPSu;

@group(0) @binding(2) var<storage, read> weight: array<f32>; // [COLS, TAPS], the oldest row's first
//#if KEEPS
@group(0) @binding(3) var<storage, read_write> ring: array<f32>; // [slots, RING, COLS]
//#else
@group(0) @binding(3) var<storage, read> ring: array<f32>; // [slots, RING, COLS]
//#endif
@group(0) @binding(4) var<storage, read_write> out: array<f32>; // [rows, COLS]

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let col = id.x;
  let row = id.y;
  if (col >= COLS) {
    return;
  }
  let own = rows[row];
  if (own.live == 0u) {
    out[row * COLS + col] = 0.0;
    return;
  }
  var sum = 0.0;
  //#for i in TAPS
  {
    let back = TAPS - 1u - $iu;
    var read = 0.0;
    if (back <= own.position) {
      if (back <= row && same_slot(row, row - back, row + 1u)) {
        read = convolved(row - back, col);
      } else {
        read = ring[(own.slot * RING + (own.position - back) % RING) * COLS + col];
      }
    }
    sum = fma(weight[col * TAPS + $iu], read, sum);
  }
  //#endfor
  //#if KEEPS
  ring[(own.slot * RING + own.position % RING) * COLS + col] = convolved(row, col);
  //#endif
  //#if GATED
  out[row * COLS + col] = x[row * X_COLS + COLS + col] * sum;
  //#else
  out[row * COLS + col] = sum / (1.0 + exp(-sum));
  //#endif
}
