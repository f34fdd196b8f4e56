// What the makers of routed_experts.wgsl do: x plus the sums of a split-K matmul, normed, in `staged`, and $PART
// logits of it. Every sum has the order of router/row_logits.wgsl, with $NORM_LANES lanes of the norm and ROUTER_LANES
// of a logit; an invocation has the norm's lanes thread, thread + THREADS, ... Slot:
//   router: `load_router(i)` and `router_vec8(block)` of the router's format (router_*.wgsl).

//use matmul/dot/add8
//use router

override EPS: f32;
override ROUTER_LANES: u32; // of a logit
override MAKERS: u32; // makers of a row

const THREADS = $THREADSu; // LANES * GROUPS

@group(0) @binding(3) var<storage, read> sums: array<vec4<f32>>; // [$ADDENDS, rows, COLS / 4]
@group(0) @binding(4) var<storage, read> norm_weight: array<vec4<f32>>; // [COLS / 4]
@group(0) @binding(6) var<storage, read_write> stream: array<vec4<f32>>; // [rows, COLS / 4]: not x

var<workgroup> squares: array<f32, $NORM_LANES>;
var<workgroup> logit_sums: array<f32, $LOGIT_SUMS>; // of a group, and one of padding

fn add_squares(sum: f32, v: vec4<f32>) -> f32 {
  return fma(v.w, v.w, fma(v.z, v.z, fma(v.y, v.y, fma(v.x, v.x, sum))));
}

fn norm_row(row: u32, store: bool, thread: u32) {
  let stride = arrayLength(&sums) / $ADDENDSu;
  //for u in NORM_TURNS
  //for j in NORM_EACH
  let i$u_$j = thread + $uu * THREADS + $(j * NORM_LANES)u;
  let mine$u_$j = thread + $uu * THREADS < $NORM_LANESu && i$u_$j < COLS / 8u;
  let vec$u_$j = 2u * select(0u, i$u_$j, mine$u_$j);
  let at$u_$j = row * (COLS / 4u) + vec$u_$j;
  let gain$u_$j = Vec8(norm_weight[vec$u_$j], norm_weight[vec$u_$j + 1u]);
  let x$u_$j = Vec8(x[at$u_$j], x[at$u_$j + 1u]);
  var s$u_$j = Vec8(sums[at$u_$j], sums[at$u_$j + 1u]);
  //for q in MORE_ADDENDS
  s$u_$j.lo += sums[($qu + 1u) * stride + at$u_$j];
  s$u_$j.hi += sums[($qu + 1u) * stride + at$u_$j + 1u];
  //end
  let v$u_$j = Vec8(x$u_$j.lo + s$u_$j.lo, x$u_$j.hi + s$u_$j.hi);
  //end
  //end
  //for u in NORM_TURNS
  {
    var square = 0.0;
    //for j in NORM_EACH
    if (mine$u_$j) {
      square = add_squares(add_squares(square, v$u_$j.lo), v$u_$j.hi);
      if (store) {
        stream[at$u_$j] = v$u_$j.lo;
        stream[at$u_$j + 1u] = v$u_$j.hi;
      }
    }
    //end
    if (thread + $uu * THREADS < $NORM_LANESu) {
      squares[thread + $uu * THREADS] = square;
    }
  }
  //end
  workgroupBarrier();
  //for s in STAGES
  {
    let left = $NORM_LANESu >> (3u * $su + 3u);
    if (thread < left) {
      var sum = 0.0;
      //for e in EIGHT
      sum += squares[thread + $eu * left];
      //end
      squares[thread] = sum;
    }
    workgroupBarrier();
  }
  //end
  var sum = 0.0;
  //for e in REST
  sum += squares[$e];
  //end
  let scale = 1.0 / sqrt(sum / f32(COLS) + EPS);
  //for u in NORM_TURNS
  //for j in NORM_EACH
  if (mine$u_$j) {
    staged[i$u_$j] = v$u_$j.lo * scale * gain$u_$j.lo;
    staged[COLS / 8u + i$u_$j] = v$u_$j.hi * scale * gain$u_$j.hi;
  }
  //end
  //end
  workgroupBarrier();
}

// Makes and posts one of the MAKERS parts of a row: its logits and its share of the normed row.
fn post_logits(part: u32, thread: u32) {
  let vec8s = COLS / 8u;
  let row = part / MAKERS;
  let own = part % MAKERS;
  let lane = thread % ROUTER_LANES;
  let group = thread / ROUTER_LANES;
  // Groups without a logit of their own read that of the last, which is in the cache.
  let at = min(own * $PARTu + min(group, $PARTu - 1u), EXPERTS - 1u) * vec8s + lane;
  //for s in ROUTER_STEPS
  var block$s = load_router(at + $su * ROUTER_LANES);
  //end
  workgroupBarrier(); // before `staged` is written again
  norm_row(row, own == 0u, thread);
  let posts = row * ROW_POSTED;
  let share = (vec8s + MAKERS - 1u) / MAKERS;
  for (var i = thread; i < 8u * share; i += THREADS) {
    let e = own * share + i / 8u;
    if (e < vec8s) {
      let half = select(0u, vec8s, i % 8u >= 4u);
      post(posts + NORMED + i % 8u * vec8s + e, ~bitcast<u32>(staged[half + e][i % 4u]));
    }
  }
  var sum = 0.0;
  let step = $ROUTER_STEPSu * ROUTER_LANES;
  for (var k = 0u; k < vec8s; k += step) {
    //for s in ROUTER_STEPS
    {
      let i = k + $su * ROUTER_LANES + lane;
      sum = add8(sum, staged[i], staged[vec8s + i], router_vec8(block$s));
      //for m in MORE
      block$s = load_router(at + min(k + step, vec8s - step) + $su * ROUTER_LANES);
      //end
    }
    //end
  }
  logit_sums[group * (ROUTER_LANES + 1u) + lane] = sum;
  workgroupBarrier();
  let e = own * $PARTu + thread;
  if (thread < $PARTu && e < EXPERTS) {
    var logit = 0.0;
    for (var l = 0u; l < ROUTER_LANES; l += $ROUTER_UNROLLu) {
      //for l in ROUTER_UNROLL
      logit += logit_sums[thread * (ROUTER_LANES + 1u) + l + $lu];
      //end
    }
    post(posts + KEYS + e, key_of(logit));
  }
  workgroupBarrier();
  if (thread == 0u) {
    atomicAdd(&posted[posts], 1u);
  }
}
