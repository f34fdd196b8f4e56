// RMSNorm of q and k over each head (Qwen3) or over all of a row's (OLMo-2): x / sqrt(mean(x^2) + EPS) *
// weight; then turns q and k by rope, and stores them and v (lib/place_head.wgsl).
//#if AFTER_ROPE
// The norm is behind rope (Hunyuan): a turn leaves the mean as it is, so only the weights are multiplied later.
//#endif
//
// One workgroup per ($HEADS heads, row); heads run over q, k, v of a qkv row. Of a head's $LANES invocations lane l
// takes rope pairs l, l + $LANES, ... of the heads that are normed together; the lanes' squares are added in order of
// l. Everything is loaded before the sum is waited for.
//#if values != plain
//
// With `values` v is normed too, without weights: "normed" v, "keys" k as it is, where a row has no v. "none": a row is
// q alone, and nothing is stored.
//#endif

//#import lib/place_head

override EPS: f32;
override Q_SPAN: u32; // heads of q that are normed together, 1 or all
override K_SPAN: u32;
override ROW: u32; // numbers of a row of qkv: those of q, k and v, and of what is behind them

const LANES = $LANESu;

@group(0) @binding(0) var<storage, read> qkv: array<f32>; // [rows, ROW]: the heads of q, k, v
@group(0) @binding(1) var<storage, read> weight: array<f32>; // [Q_SPAN + K_SPAN, HEAD_DIM]: of q, of k
@group(0) @binding(2) var<storage, read_write> out: array<f32>; // [rows, Q_HEADS, HEAD_DIM]: q

// What RMSNorm multiplies a head by: 1 / sqrt(mean(x^2) + EPS).
fn norm_scale(squares: f32, count: u32) -> f32 {
  return 1.0 / sqrt(squares / f32(count) + EPS);
}

var<workgroup> squares: array<f32, $(LANES * HEADS)>;

@compute @workgroup_size($(LANES * HEADS))
fn main(@builtin(workgroup_id) tile: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let lane = thread % LANES;
  let own_head = tile.x * $HEADSu + thread / LANES;
  //#if values == none
  let there = own_head < Q_HEADS;
  let head = min(own_head, Q_HEADS - 1u);
  //#else
  let there = own_head < Q_HEADS + 2u * KV_HEADS;
  let head = min(own_head, Q_HEADS + 2u * KV_HEADS - 1u);
  //#endif
  let half = HEAD_DIM / 2u;
  let row = tile.y * ROW;
  //#if values == keys
  let first = row + select(head, head - KV_HEADS, head >= Q_HEADS + KV_HEADS) * HEAD_DIM;
  //#else
  let first = row + head * HEAD_DIM;
  //#endif
  let is_q = head < Q_HEADS;
  let span = select(K_SPAN, Q_SPAN, is_q);
  let before = select(Q_HEADS, 0u, is_q);
  let within = (head - before) % span;
  let normed = head < Q_HEADS + KV_HEADS;
  let first_weight = select(0u, (select(Q_SPAN, 0u, is_q) + within) * HEAD_DIM, normed);
  //#for p in PAIRS
  let w$p = lane + $pu * LANES;
  let at$p = min(w$p, half - 1u);
  let pair$p = vec2<f32>(qkv[first + at$p], qkv[first + half + at$p]);
  let gain$p = vec2<f32>(weight[first_weight + at$p], weight[first_weight + half + at$p]);
  let place$p = head_place(tile.y, head, at$p);
  //#endfor
  var square = 0.0;
  if (span == 1u) {
    //#for p in PAIRS
    if (w$p < half) {
      square = fma(pair$p.y, pair$p.y, fma(pair$p.x, pair$p.x, square));
    }
    //#endfor
  } else {
    for (var h = 0u; h < span; h++) {
      let other = row + (head - within + h) * HEAD_DIM;
      for (var w = lane; w < half; w += LANES) {
        let a = qkv[other + w];
        let b = qkv[other + half + w];
        square = fma(b, b, fma(a, a, square));
      }
    }
  }
  squares[thread] = square;
  workgroupBarrier();
  var sum = 0.0;
  //#for l in LANES
  sum += squares[thread - lane + $lu];
  //#endfor
  let scale = norm_scale(sum, span * HEAD_DIM);
  //#for p in PAIRS
  if (there && w$p < half) {
    //#if AFTER_ROPE
    let unweighted$p = select(pair$p, pair$p * scale, normed);
    put_turned(place$p, head, w$p, turned(unweighted$p, place$p.turn) * gain$p, unweighted$p);
    //#else if values == plain
    put_head(place$p, head, w$p, select(pair$p, pair$p * scale * gain$p, normed));
    //#else
    put_head(place$p, head, w$p, pair$p * scale * select(vec2<f32>(1.0), gain$p, normed));
    //#endif
  }
  //#endfor
}
