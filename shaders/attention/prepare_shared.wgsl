// Statements of attention.wgsl's `main` that bring its queries to workgroup memory (queries_shared.wgsl).
//for s in STEPS
//for p in PASSES
let asked$s_$p = load_key(key$p, min(lane + $su * LANES, VEC8S - 1u));
//end
//end
//for c in EARLY
let packed$c = load_value(value$c, i);
//end
let newest = 0u;
//for n in QUERY_TURNS
let vector$n = min(thread + $nu * THREADS, $QUERIESu * 2u * VEC8S - 1u);
let query_of$n = vector$n / (2u * VEC8S);
queries[vector$n] = q[((row + min(query_of$n / GROUP, count - 1u)) * heads + tile.y * GROUP +
  query_of$n % GROUP) * (2u * VEC8S) + vector$n % (2u * VEC8S)];
//end
workgroupBarrier();
