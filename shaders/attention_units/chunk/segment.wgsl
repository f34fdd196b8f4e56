// The sums of a segment in chunk_units.wgsl are complete; the next one's begin with zero.

let segment = end_segment(thread, split / SPAN, split + 1u == stop, vec2(peak, total));
if (query / GROUP < count) {
  let at = (row + query / GROUP) * heads + tile.y * GROUP + query % GROUP;
  //for u in SUMS
  put_segment(segment, at, $uu / $PART_SUMSu * PART + $uu % $PART_SUMSu * SHARERS + share, sum$u);
  //end
}
peak = NEGATIVE;
total = 0.0;
//for u in SUMS
sum$u = vec4<f32>();
//end
