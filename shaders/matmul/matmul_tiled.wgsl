// y[r, n] = sum_k x[r, k] * W[n, k] as in matmul.wgsl, in the same order, for many rows on hardware: a workgroup
// makes 64 rows of 32 pairs of outputs, an invocation 8 rows of 4 pairs, lane after lane, so that each x and each
// weight that comes to workgroup memory is used for 64 products, and a weight is unpacked once for 64 rows.
//
// Of every lane l of LANES in turn, a stage is $STAGE vec8s of its k, LANES vec8s apart. While one stage is
// multiplied the next one is prefetched into the other of two buffers. In a buffer are, k by k of the stage, 64
// of x and 64 weights: of output pairs 0 to 31 their first halves, then their second ones.
//
// COLS / 8 / SPLIT_K is a multiple of LANES * $STAGE, and $STAGE of $BLOCK_VEC8S. Slots `epilogue`, `out` and
// `weights` are those of matmul.wgsl; besides:
//   tile: how a vec8 of row `own` of 64 is put there: `fn put_x(at, own, lo, hi)`, `fn put_block_<j>(buffer, own, block)`
//     (tile/floats.wgsl, tile/whole.wgsl).
//   products: the statements that multiply a stage (tile/*_products.wgsl).

//use epilogue
//use out
//use matmul/common_rows
//use weights
//use tile

const TILE_ROWS = 64u;
const TILE_PAIRS = 32u;
const THREADS = 64u;
const QUADS = 16u; // fours of a k of x, and of its weights
const WEIGHTS_AT = $STAGEu * 8u * QUADS; // vectors of a buffer before its weights
const BUFFER = $BUFFERu; // vectors

var<workgroup> staged: array<vec4<f32>, $VECTORS>;

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let half = MATRIX_ROWS / 2u;
  let blocks = COLS / 8u / $BLOCK_VEC8Su;
  let range = blocks / SPLIT_K;
  let rows = arrayLength(&x) / (COLS / 4u);
  let row = tile.x * TILE_ROWS;
  let first_pair = tile.y * TILE_PAIRS;

  // What this invocation brings: row `thread` of x, and of W.
  let x_from = min(row + thread, rows - 1u) * (COLS / 4u) + tile.z * range * $BLOCK_VEC8Su * 2u;
  let own = min(first_pair + thread % TILE_PAIRS, half - 1u) + select(0u, half, thread >= TILE_PAIRS);
  let weights_from = own * blocks + tile.z * range;
  // What it makes: rows 4 by_row and 32 + 4 by_row on, pairs 4 by_pair on.
  let by_row = thread / 8u;
  let by_pair = thread % 8u;

  //for r in EIGHT
  var total_a$r = vec4<f32>(0.0);
  var total_b$r = vec4<f32>(0.0);
  //end
  //for v in STAGE
  var lo$v = x[x_from + $vu * LANES * 2u];
  var hi$v = x[x_from + $vu * LANES * 2u + 1u];
  //end
  //for j in BLOCKS
  var block$j = load_block(weights_from + $ju * LANES);
  //end
  var buffer = 0u;
  //for v in STAGE
  put_x(buffer + $vu * 8u * QUADS, thread, lo$v, hi$v);
  //end
  //for j in BLOCKS
  put_block_$j(buffer, thread, block$j);
  //end
  for (var lane = 0u; lane < LANES; lane++) {
    //for r in EIGHT
    var a$r = vec4<f32>(0.0);
    var b$r = vec4<f32>(0.0);
    //end
    for (var first = 0u; first < range; first += $BLOCKSu * LANES) {
      workgroupBarrier();
      let last = first + $BLOCKSu * LANES >= range;
      let next = select(first + $BLOCKSu * LANES, 0u, last);
      let next_lane = select(lane, min(lane + 1u, LANES - 1u), last);
      //for v in STAGE
      lo$v = x[x_from + (next * $BLOCK_VEC8Su + next_lane + $vu * LANES) * 2u];
      hi$v = x[x_from + (next * $BLOCK_VEC8Su + next_lane + $vu * LANES) * 2u + 1u];
      //end
      //for j in BLOCKS
      block$j = load_block(weights_from + next + next_lane + $ju * LANES);
      //end
      //use products
      buffer = BUFFER - buffer;
      //for v in STAGE
      put_x(buffer + $vu * 8u * QUADS, thread, lo$v, hi$v);
      //end
      //for j in BLOCKS
      put_block_$j(buffer, thread, block$j);
      //end
    }
    //for r in EIGHT
    total_a$r += a$r;
    total_b$r += b$r;
    //end
  }

  // Through workgroup memory to a loop: neighbours store neighbouring outputs.
  workgroupBarrier();
  //for h in TWO
  //for r in FOUR
  staged[(32u * $hu + 4u * by_row + $ru) * QUADS + by_pair] = total_a$(4 * h + r);
  staged[(32u * $hu + 4u * by_row + $ru) * QUADS + 8u + by_pair] = total_b$(4 * h + r);
  //end
  //end
  workgroupBarrier();
  for (var i = thread; i < TILE_ROWS * TILE_PAIRS; i += THREADS) {
    let r = i / TILE_PAIRS;
    let p = i % TILE_PAIRS;
    if (row + r < rows && first_pair + p < half) {
      let at = r * QUADS + p / 4u;
      let sum = vec2<f32>(staged[at][p % 4u], staged[at + 8u][p % 4u]);
      epilogue(tile.z * rows + row + r, first_pair + p, half, sum);
    }
  }
}
