// What a matmul does with the outputs y[row, c] and y[row, c + half], which are `sum`:
// `fn epilogue(row, c, half, sum)`. The importing file declares `out`, OUT_COLS and FIRST. An epilogue that reads
// something first (qkv) also declares `prepare(row, c)` and `finish(prepared, c, sum)`, so that the reads can be issued
// earlier.

//#if epilogue == store
// out = y.

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] = sum.x;
  out[at + half] = sum.y;
}
//#else if epilogue == add
// out = out + y, the residual connection.

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] += sum.x;
  out[at + half] += sum.y;
}
//#else if epilogue == bias
// out = y + bias; with several ranges of k only the first adds the bias. The importer sets `own_range` first.

@group(0) @binding(8) var<storage, read> bias: array<f32>; // of the columns

var<private> own_range: u32;

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  let added = vec2<f32>(bias[FIRST + c], bias[FIRST + c + half]);
  let y = sum + select(vec2<f32>(0.0), added, own_range == 0u);
  out[at] = y.x;
  out[at + half] = y.y;
}
//#else if epilogue == clamped
// For experts whose gate and up are neighbouring rows: out is the clamped gate with the biases of `own_expert`, which
// the importer sets first.

//#import lib/clamped_gate

@group(0) @binding(8) var<storage, read> bias: array<vec2<f32>>; // [experts, OUT_COLS]

var<private> own_expert: u32;

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  out[row * OUT_COLS + FIRST + c] = clamped(sum + bias[own_expert * OUT_COLS + c]);
}
//#else if epilogue == clamped_scaled
// The same, and passes each number to the importer's `consider(y)`, for the scales of out's rows.

//#import lib/clamped_gate

@group(0) @binding(8) var<storage, read> bias: array<vec2<f32>>; // [experts, OUT_COLS]

var<private> own_expert: u32;

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let y = clamped(sum + bias[own_expert * OUT_COLS + c]);
  consider(y);
  out[row * OUT_COLS + FIRST + c] = y;
}
//#else if epilogue == gated
// For a matrix [gate; up]: out = silu(gate) * up, or gelu(gate) * up.

//#import lib/gate

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  out[row * OUT_COLS + FIRST + c] = gated(sum);
}
//#else if epilogue == gated_scaled
// The same, and passes each number to the importer's `consider(y)`, for the scales of out's rows.

//#import lib/gate

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let y = gated(sum);
  consider(y);
  out[row * OUT_COLS + FIRST + c] = y;
}
//#else if epilogue == gated_by
// out = gelu(y) * by.

//#import lib/gate

@group(0) @binding(8) var<storage, read> by: array<f32>; // [rows, OUT_COLS]

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] = gated(vec2<f32>(sum.x, by[at]));
  out[at + half] = gated(vec2<f32>(sum.y, by[at + half]));
}
//#else if epilogue == scale
// out = BY y.

override BY: f32;

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  out[at] = BY * sum.x;
  out[at + half] = BY * sum.y;
}
//#else if epilogue == cap
// out = capped y (lib/soft_cap.wgsl).

//#import lib/soft_cap

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let at = row * OUT_COLS + FIRST + c;
  let y = capped(vec4<f32>(sum, 0.0, 0.0));
  out[at] = y.x;
  out[at + half] = y.y;
}
//#else if epilogue == qkv
// For a matrix [q; k; v] whose rope pairs are half a shard apart (`heads` of the loader): q and k are rotated, q is
// stored in `out`, k and v in the pages.

//#import lib/place_head
//#if BIASED
// q, k and v with a bias (Qwen2).

@group(0) @binding(8) var<storage, read> bias: array<f32>; // [Q_HEADS + 2 KV_HEADS, HEAD_DIM]

fn biased(sum: vec2<f32>, at: u32) -> vec2<f32> {
  return sum + vec2<f32>(bias[at], bias[at + HEAD_DIM / 2u]);
}
//#else
// q, k and v without a bias.

fn biased(sum: vec2<f32>, at: u32) -> vec2<f32> {
  return sum;
}
//#endif

// Reads all that placing the elements c and c + half of a row needs, except the bias.
fn prepare(row: u32, c: u32) -> HeadPlace {
  let pair = FIRST + c;
  return head_place(row, pair / (HEAD_DIM / 2u), pair % (HEAD_DIM / 2u));
}

fn finish(place: HeadPlace, c: u32, sum: vec2<f32>) {
  let pair = FIRST + c;
  let head = pair / (HEAD_DIM / 2u);
  let w = pair % (HEAD_DIM / 2u);
  put_head(place, head, w, biased(sum, head * HEAD_DIM + w));
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  finish(prepare(row, c), c, sum);
}
//#else if epilogue == partial
// Keeps the partial result of a group's outputs for `end_group` (lib/matmul_outputs.wgsl).

//#import lib/partial_$partial

override VOCAB: u32; // columns that count; those of W beyond are padding

var<private> kept: Partial = NO_PARTIAL;

fn consider(logit: f32, token: u32) {
  if (token < VOCAB) {
    kept = joined(kept, partial_of(logit, token));
  }
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  consider(sum.x, FIRST + c);
  consider(sum.y, FIRST + c + half);
}
//#else if epilogue == handoff_gated
// For one row and a matrix [gate; up]: other workgroups wait for the output (lib/matmul_outputs.wgsl).

//#import lib/gate

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  put_word(FIRST + c, gated(sum));
}
//#else if epilogue == handoff
// For one row: other workgroups wait for the output (lib/matmul_outputs.wgsl).

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  put_word(row * OUT_COLS + FIRST + c, sum.x);
  put_word(row * OUT_COLS + FIRST + c + half, sum.y);
}
//#endif
