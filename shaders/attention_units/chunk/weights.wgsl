// The softmax of a split in chunk_units.wgsl: SHARERS invocations have a query, each writes its weights in the place
// of its scores. Totals are added by a tree over eights of cells, whoever has them. The first part of
// values is asked for before.

//for u in V_LOADS
var vx$u = v_halves[value_at(values_of, thread + $uu * THREADS, 0u)];
//end
var top = NEGATIVE;
var heavy = NEGATIVE; // the largest of score and exponent together, base 2
//for g in SHARED_FOURS
var score$g = scores_of(query, share * SHARED + $(4 * g)u, unit);
//end
if (!whole) {
  //for g in SHARED_FOURS
  score$g = seen_of(score$g, first + share * SHARED + $(4 * g)u, seen);
  //end
}
//for g in SHARED_FOURS
top = max(top, most_of(score$g));
heavy = max(heavy, most_of(fma(score$g, vec4(LOG2_E), v_exponent[(share * SHARED + $(4 * g)u) / 4u])));
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
let added$h = weigh(query, share * SHARED + $(8 * h)u, $hu, score$(2 * h), score$(2 * h + 1), own_peak, lifted);
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
let raised = power(-lift);
total = fma(total, kept, added * taken);
peak = select(peak, new_peak, any);
workgroupBarrier();
