//#if hold == normed
// For x that is normed: the norm's weights and, where sums of the branch before or outputs of its experts are
// still to be added, these and where the residual stream goes. x is not written: all workgroups read it.

override EPS: f32;

@group(0) @binding(9) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
//#if RELAYED
// The sums that are added, where other workgroups of the dispatch make them (relay.wgsl): all are one range of words.

//#import matmul/relay/counts

var<workgroup> sums: array<vec4<f32>, RANGE / 4u>; // [ranges, COLS / 4]

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y * z;
}

// As of rounded words, neighbours store components of one vec4.
fn hold_word(i: u32, word: u32) {
  sums[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {}
//#endif
//#if STORED
@group(0) @binding(10) var<storage, read> sums: array<vec4<f32>>; // [ranges, rows, COLS / 4]
//#endif
//#if WEIGHED
@group(0) @binding(10) var<storage, read> outputs: array<vec4<f32>>; // [rows, $EXPERTS, COLS / 4]
@group(0) @binding(12) var<storage, read> shares: array<f32>; // [rows, $EXPERTS]
//#endif
//#if STREAMED
@group(0) @binding(11) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: x + what is added
//#endif
//#if KEPT
override KEPT_COLS: u32; // row stride
override KEPT_FIRST: u32; // first column written

@group(0) @binding(14) var<storage, read_write> kept: array<vec4<f32>>; // [rows, KEPT_COLS / 4]: the same
//#endif

var<workgroup> squares: array<f32, $(ROWS * NORM_LANES)>;

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}
//#else if hold == combined
// For x that is attention's output: the partial sums of attention.wgsl, over at most $SPLITS splits that a row sees. x itself
// is not read, its size gives the number of rows.

//#import lib/rows
//#import lib/visible

override HEADS: u32;
override KV_SPLITS: u32; // of a whole block table

const SPLIT_CELLS = 64u;
const HEAD = $HEADu; // vec4 of a head
const NEGATIVE = -3.0e38; // below every score; minus infinity would make NaN of inf - inf

@group(0) @binding(9) var<storage, read> parts: array<vec4<f32>>; // [rows, HEADS, KV_SPLITS, HEAD]
@group(0) @binding(10) var<storage, read> stats: array<vec2<f32>>; // [rows, HEADS, KV_SPLITS]: peak, total
@group(0) @binding(11) var<storage, read> row_list: array<Row>; // [rows]
//#else if hold == relay
// For x that is waited for; a range of words is one of k. x itself is not read, its size gives the number of rows,
// which is one.

//#import matmul/relay/counts
//#if dots == floats
// How relay.wgsl stores words that came, for products of floats: as they are.

fn hold_word(i: u32, word: u32) {
  put_float(i, bitcast<f32>(word));
}

fn take_words(thread: u32) {}
//#else
// How relay.wgsl stores words that came, for products of integers: eights of them are rounded together, when all are
// there. Ranges of quantized matrices are whole (relay.ts), so nothing is stored behind one, and no barrier is needed for it.
// Neighbours store components of one vec4: WGSL does not promise that those are apart, Vulkan's drivers, the only
// ones with relays, store them alone.

var<workgroup> words_taken: array<vec4<f32>, $(2 * STAGE)>;

fn hold_word(i: u32, word: u32) {
  words_taken[i / 4u][i % 4u] = bitcast<f32>(word);
}

fn take_words(thread: u32) {
  for (var e = thread; e < $STAGEu; e += THREADS) {
    put_vec8(0u, e, words_taken[2u * e], words_taken[2u * e + 1u]);
  }
}
//#endif

// Called first, with the workgroups along y and z.
fn relay_begin(y: u32, z: u32) {
  readers = y;
}
//#endif
