// The sums of attention_units.wgsl so far are stored, and begin with zero again.

if (share == 0u) {
  ends[query] = vec2(peak, total);
}
workgroupBarrier();
let place = select(z, split, APART == 1u);
//for u in SUMS
{
  let e = thread + $uu * THREADS;
  let own = e / (2u * VEC8S);
  if (e < QUERIES * 2u * VEC8S && own / GROUP < count) {
    let at = (row + own / GROUP) * heads + tile.y * GROUP + own % GROUP;
    put(at, place, e % (2u * VEC8S), sum$u, ends[own]);
  }
  sum$u = vec4<f32>();
}
//end
peak = NEGATIVE;
total = 0.0;
