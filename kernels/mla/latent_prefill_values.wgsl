// out[r, h] = sum of weighted latents / total, by the weights that latent_prefill_weights.wgsl stored: the second half
// of attention over latents (MLA) of many queries, to the bit that of latent_attention.wgsl and latent_combine.wgsl.
// Zeros for padding.
//
// One workgroup per ($DIMS elements of a latent, $QUERIES queries of a slot); an invocation has $TQ queries by $TD
// fours. Chunks of 16 cells are added to the sums of their segment of 128, segments to those of their lane, which has
// every LANES-th of them, and the lanes to what is written. The factors of a part (lib/online_softmax.wgsl) are
// the same for all elements: an invocation computes them for a query of the workgroup, a segment at a time. A stage
// loads $STAGED chunks of weights and latents into workgroup memory, while the one before is summed.

//#import lib/rows
//#import lib/visible
//#import lib/online_softmax
//#import lib/latent_load

override HEADS: u32;
override TABLE_PAGES: u32; // pages per slot in the block table
override RUNS: u32; // segments of a query in `sums`
override SLOT_QUERIES: u32; // queries of one slot that follow each other
override FIRST_ROW: u32; // of `rows`

const CHUNK = 16u; // cells
const CHUNKS = 8u; // of a segment
const SEGMENT = CHUNKS * CHUNK;
const RECORD = 36u; // vec4 of a record, see latent_prefill_weights.wgsl
const LANES = $LANESu;
const THREADS = $THREADSu;
const QUERIES = $QUERIESu;
const WIDTH4 = $WIDTH4u; // of a latent and its rotated part
const RANK4 = $RANK4u;
const DIM4S = $DIMSu / 4u;
const WIDE = $WIDEu; // invocations side by side along elements
const TALL = THREADS / WIDE; // along queries
const CELLS = $STAGEDu * CHUNK; // of a stage
const CELL4S = CELLS / 4u;
const PITCH = CELL4S + 1u; // odd: queries begin in different banks

@group(0) @binding(0) var<storage, read> sums: array<vec4<f32>>; // [rows, HEADS, RUNS, RECORD]
@group(0) @binding(1) var<storage, read> keys: array<vec4<u32>>; // [pages, PAGE], rows of a dtype
@group(0) @binding(2) var<storage, read> rows: array<Row>; // [FIRST_ROW + rows]
@group(0) @binding(3) var<storage, read> pages: array<u32>; // [slots, TABLE_PAGES]
@group(0) @binding(4) var<storage, read_write> out: array<vec4<f32>>; // [rows, HEADS, WIDTH4]

var<workgroup> weights: array<vec4<f32>, QUERIES * PITCH>;
var<workgroup> latents: array<vec4<f32>, CELLS * DIM4S>;
var<workgroup> places: array<u32, CHUNKS>; // pages of a segment
var<workgroup> folds: array<vec2<f32>, CHUNKS * QUERIES>; // shrink, share of a chunk
var<workgroup> segment_folds: array<vec2<f32>, QUERIES>;
var<workgroup> lane_folds: array<vec2<f32>, QUERIES>;
var<workgroup> totals: array<f32, QUERIES>; // 0: padding

@compute @workgroup_size(THREADS)
fn main(
  @builtin(workgroup_id) tile: vec3<u32>,
  @builtin(num_workgroups) launched: vec3<u32>,
  @builtin(local_invocation_index) thread: u32,
) {
  let place = launched.y - 1u - tile.y; // those that see most begin first
  let tiles = (SLOT_QUERIES + QUERIES - 1u) / QUERIES;
  let within = place % tiles * QUERIES;
  let query = place / tiles * SLOT_QUERIES + within;
  let count = min(QUERIES, SLOT_QUERIES - within);
  var slot = 0u;
  var end = 0u;
  for (var r = query / HEADS; r <= (query + count - 1u) / HEADS; r++) {
    let own = rows[FIRST_ROW + r];
    if (own.live == 1u) {
      slot = own.slot;
      end = max(end, visible_end(own));
    }
  }
  let wide = thread % WIDE;
  let tall = thread / WIDE;
  let first_four = tile.x * DIM4S;
  let segments = (end + SEGMENT - 1u) / SEGMENT;
  let lanes = clamp(segments, 1u, LANES); // that have segments
  //#for u in W_LOADS
  let w$u = (query + min((thread + $uu * THREADS) / CELL4S, count - 1u)) * RUNS * RECORD
    + (thread + $uu * THREADS) % CELL4S;
  var weight$u = vec4<f32>();
  //#endfor
  //#for u in L_LOADS
  let four$u = min(first_four + (thread + $uu * THREADS) % DIM4S, RANK4 - 1u);
  let cell$u = (thread + $uu * THREADS) / DIM4S;
  var packed$u = vec4<u32>();
  //#endfor
  let last_page = slot * TABLE_PAGES + (max(end, 1u) - 1u) / PAGE;
  var page = pages[min(slot * TABLE_PAGES + thread % CHUNKS, last_page)]; // of the segment to come
  var top = NEGATIVE; // of query `thread`
  var total = 0.0;

  for (var lane = 0u; lane < LANES; lane++) {
    var lane_peak = NEGATIVE;
    var lane_total = 0.0;
    //#for r in TQ
    //#for d in TD
    var lane$r_$d = vec4<f32>();
    //#endfor
    //#endfor
    for (var segment = lane; segment < segments; segment += LANES) {
      let stop = min(end, (segment + 1u) * SEGMENT);
      if (thread < CHUNKS) {
        places[thread] = page;
      }
      let after = select(lane + 1u, segment + LANES, segment + LANES < segments);
      page = pages[min(slot * TABLE_PAGES + after * CHUNKS + thread % CHUNKS, last_page)];
      let stages = (stop - segment * SEGMENT + CELLS - 1u) / CELLS;
      //#for r in TQ
      //#for d in TD
      var sum$r_$d = vec4<f32>();
      //#endfor
      //#endfor
      for (var stage = 0u; stage <= stages; stage++) {
        workgroupBarrier(); // after all reads of the stage before
        if (stage > 0u) {
          //#for u in W_LOADS
          if (($uu + 1u) * THREADS <= QUERIES * CELL4S || thread + $uu * THREADS < QUERIES * CELL4S) {
            weights[(thread + $uu * THREADS) / CELL4S * PITCH
              + (thread + $uu * THREADS) % CELL4S] = weight$u;
          }
          //#endfor
          //#for u in L_LOADS
          if (($uu + 1u) * THREADS <= CELLS * DIM4S || thread + $uu * THREADS < CELLS * DIM4S) {
            latents[thread + $uu * THREADS] = four_of(packed$u, four$u);
          }
          //#endfor
          workgroupBarrier();
        }
        if (stage < stages) {
          let first = segment * SEGMENT + stage * CELLS;
          //#for u in W_LOADS
          weight$u = sums[w$u + segment * RECORD + stage * CELL4S];
          //#endfor
          //#for u in L_LOADS
          {
            let cell = min(first + cell$u, end - 1u) % SEGMENT;
            packed$u = load_four(places[cell / PAGE] * PAGE + cell % PAGE, four$u);
          }
          //#endfor
        }
        if (stage == 0u) {
          if (thread < QUERIES) {
            let ended = ((query + min(thread, count - 1u)) * RUNS + segment) * RECORD + 32u;
            var peak = NEGATIVE;
            var part = 0.0;
            //#for h in 4
            {
              let pair = sums[ended + $hu]; // peaks, totals
              //#for j in 2
              {
                let there = segment * SEGMENT + $(2 * h + j)u * CHUNK < end;
                let fold = fold_one(peak, select(NEGATIVE, pair[$j], there));
                peak = fold.z;
                part = fma(select(0.0, pair[$(2 + j)], there), fold.y, part * fold.x);
                folds[$(2 * h + j)u * QUERIES + thread] = fold.xy;
              }
              //#endfor
            }
            //#endfor
            let fold = fold_one(lane_peak, peak);
            lane_peak = fold.z;
            lane_total = fma(part, fold.y, lane_total * fold.x);
            segment_folds[thread] = fold.xy;
          }
        } else {
          let weights_at = tall * PITCH;
          let latents_at = wide;
          //#for s in STAGED
          {
            //#for r in TQ
            //#for d in TD
            var part$r_$d = vec4<f32>();
            //#endfor
            //#endfor
            for (var c = 0u; c < 4u; c++) {
              //#for r in TQ
              let own$r = weights[weights_at + $ru * TALL * PITCH + $su * 4u + c];
              //#endfor
              //#for k in 4
              //#for d in TD
              {
                let value = latents[latents_at + ($su * CHUNK + 4u * c + $ku) * DIM4S + $du * WIDE];
                //#for r in TQ
                part$r_$d = fma(vec4<f32>(own$r[$k]), value, part$r_$d);
                //#endfor
              }
              //#endfor
              //#endfor
            }
            let chunk = (stage - 1u) * $STAGEDu + $su;
            //#for r in TQ
            {
              let fold = folds[chunk * QUERIES + tall + $ru * TALL];
              //#for d in TD
              sum$r_$d = fma(part$r_$d, vec4<f32>(fold.y), sum$r_$d * fold.x);
              //#endfor
            }
            //#endfor
          }
          //#endfor
        }
      }
      //#for r in TQ
      {
        let fold = segment_folds[tall + $ru * TALL];
        //#for d in TD
        lane$r_$d = fma(sum$r_$d, vec4<f32>(fold.y), lane$r_$d * fold.x);
        //#endfor
      }
      //#endfor
    }
    if (thread < QUERIES) {
      let fold = fold_one(top, lane_peak);
      top = fold.z;
      total = fma(lane_total, fold.y, total * fold.x);
      lane_folds[thread] = fold.xy;
      totals[thread] = total;
    }
    workgroupBarrier();
    if (lane < lanes) {
      //#for r in TQ
      {
        let own = tall + $ru * TALL;
        let fold = lane_folds[own];
        let seen = visible_end(rows[FIRST_ROW + (query + min(own, count - 1u)) / HEADS]) > 0u;
        //#for d in TD
        if (own < count && first_four + wide + $du * WIDE < RANK4) {
          let at = (query + own) * WIDTH4 + first_four + wide + $du * WIDE;
          var whole = vec4<f32>(); // of the lanes before, which only this invocation writes
          if (lane > 0u) {
            whole = out[at];
          }
          whole = fma(lane$r_$d, vec4<f32>(fold.y), whole * fold.x);
          if (lane + 1u == lanes) {
            whole = select(vec4<f32>(), whole / totals[own], seen);
          }
          out[at] = whole;
        }
        //#endfor
      }
      //#endfor
    }
    workgroupBarrier();
  }
}
