// The softmax of a split in attention_units.wgsl: SHARERS invocations have a query. Totals are added by a tree over
// eights of cells, whoever has them.

var top = NEGATIVE;
var heavy = NEGATIVE; // the largest of score and exponent together, base 2
//for g in SHARED_FOURS
let score$g = scores_of(query, share * SHARED + $(4 * g)u, first, unit);
top = max(top, most_of(score$g));
heavy = max(heavy, most_of(fma(score$g, vec4(LOG2_E), exponents_of(share * SHARED + $(4 * g)u))));
//end
//for s in SHARER_STEPS
top = max(top, subgroupShuffleXor(top, 1u << $su));
heavy = max(heavy, subgroupShuffleXor(heavy, 1u << $su));
//end
let any = top > NEGATIVE;
let own_peak = select(0.0, ceil(top * LOG2_E), any);
let lift = select(0.0, 14.0 + own_peak - ceil(heavy), any); // c
workgroupBarrier();
//for h in SHARED_EIGHTS
let added$h = weigh(query, share * SHARED + $(8 * h)u, score$(2 * h), score$(2 * h + 1), own_peak, lift);
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
//for s in SHARER_STEPS
added += subgroupShuffleXor(added, 1u << $su);
//end
let new_peak = max(peak, own_peak);
let kept = power(peak - new_peak);
let taken = power(own_peak - new_peak);
total = select(total, fma(total, kept, added * taken), any);
peak = select(peak, new_peak, any);
if (share == 0u) {
  shares[query] = select(vec3<f32>(), vec3(kept, power(-lift) * taken, 1.0), any);
}
