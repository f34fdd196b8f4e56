// The softmax of a split in chunk_units.wgsl: SHARERS invocations have a query, each writes its weights in the place
// of its scores. Totals are added by a tree over eights of cells, whoever has them. The first part of
// values is asked for before.

//for u in V_LOADS
var vx$u = v_halves[values_at + $uu * (V_CELLS * ROW)];
//end
var top = NEGATIVE;
var heavy = NEGATIVE; // the largest of score and exponent together, base 2
//for g in SHARED_FOURS
let sums_of$g = bitcast<vec4<f32>>(pool[own_scores + $gu]);
var score$g = sums_of$g * unit * k_scale[share * (SHARED / 4u) + $gu];
if (CAP != 0.0) {
  // SCALE / CAP is one number to some drivers: the other kernel has them side by side, too.
  score$g = capped(score$g * SCALE);
}
//end
if (!whole) {
  //for g in SHARED_FOURS
  score$g = seen_of(score$g, first + share * SHARED + $(4 * g)u, seen);
  //end
}
//for g in SHARED_FOURS
top = max(top, most_of(score$g));
heavy = max(heavy, most_of(fma(score$g, vec4(LOG2_E), v_exponent[share * (SHARED / 4u) + $gu])));
//end
//for s in SHARER_STEPS
top = max(top, subgroupShuffleXor(top, 1u << $su));
heavy = max(heavy, subgroupShuffleXor(heavy, 1u << $su));
//end
let any = top > NEGATIVE;
let own_peak = select(0.0, ceil(top * LOG2_E), any);
let lift = select(0.0, 14.0 + own_peak - ceil(heavy), any); // c
let lifted = power(lift);
//for h in SHARED_EIGHTS
let a$h = weights_of(score$(2 * h), own_peak);
let b$h = weights_of(score$(2 * h + 1), own_peak);
{
  let pa = a$h * v_power[share * (SHARED / 4u) + $(2 * h)u] * lifted;
  let pb = b$h * v_power[share * (SHARED / 4u) + $(2 * h + 1)u] * lifted;
  if ($Q_LOWu == 0u) {
    pool[own_scores + $hu] = rounded_halves(pa, pb);
  } else {
    pool[own_scores + $hu] = high_halves(pa, pb);
    pool[own_scores + SHARED / 8u + $hu] = low_halves(pa, pb);
  }
}
let four$h = a$h + b$h;
let added$h = (four$h.x + four$h.y) + (four$h.z + four$h.w);
//end
//for one in SHARED_ONE
var added = added0;
//end
//for two in SHARED_TWO
var added = added0 + added1;
//end
//for four in SHARED_FOUR
var added = (added0 + added1) + (added2 + added3);
//end
//for eight in SHARED_EIGHT
var added = ((added0 + added1) + (added2 + added3)) + ((added4 + added5) + (added6 + added7));
//end
//for s in SHARER_STEPS
added += subgroupShuffleXor(added, 1u << $su);
//end
let new_peak = max(peak, own_peak);
let kept = select(1.0, power(peak - new_peak), any);
let taken = select(0.0, power(own_peak - new_peak), any);
let part_taken = power(-lift) * taken;
total = fma(total, kept, added * taken);
peak = select(peak, new_peak, any);
workgroupBarrier();
