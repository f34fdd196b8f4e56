// The rope pairs of a head that an invocation takes, waited for while keys and values are on their way. Nothing is assumed
// of when workgroups run: where they do not come in time, this one makes them, and reads its keys and values again,
// which no register keeps until then.
let wanted = is_query || (has_new && head <= VALUE);
//for p in PAIRS
let from$p = raw_at(row, all_heads, of_qkv, at$p);
var low$p = 1u;
var high$p = 1u;
if (wanted) {
  low$p = atomicLoad(&relay[from$p]);
  high$p = atomicLoad(&relay[from$p + raw_step(all_heads)]);
}
//end
for (var turn = 0u; turn < TURNS; turn++) {
  var all_there = true;
  //for p in PAIRS
  all_there = all_there && low$p != 0u && high$p != 0u;
  //end
  if (all_there) {
    break;
  }
  //for p in PAIRS
  low$p = atomicLoad(&relay[from$p]);
  high$p = atomicLoad(&relay[from$p + raw_step(all_heads)]);
  //end
}
//for p in PAIRS
if (low$p == 0u || high$p == 0u) {
  late = 1u;
}
//end
if (workgroupUniformLoad(&late) != 0u) {
  make_again(0u, MAKERS, thread);
  workgroupBarrier();
  //for p in PAIRS
  low$p = atomicLoad(&relay[from$p]);
  high$p = atomicLoad(&relay[from$p + raw_step(all_heads)]);
  //end
  //for p in PASSES
  //for s in STEPS
  key$p_$s = load_key(key_at$p, min(lane + $su * LANES, VEC8S - 1u));
  //end
  //end
  //for c in CELLS
  value$c = load_half(stored(pages_first, min(part + $cu * PARTS, last)), j);
  //end
}
//for p in PAIRS
let pair$p = vec2<f32>(bitcast<f32>(low$p), bitcast<f32>(high$p));
//end
workgroupBarrier();
if (thread == 0u) {
  done(0u);
}
//use attention/own/squares
