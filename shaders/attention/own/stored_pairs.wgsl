// The rope pairs of a head that an invocation takes.
//for p in PAIRS
let from$p = raw_at(row, all_heads, of_qkv, at$p);
let pair$p = vec2<f32>(qkv[from$p], qkv[from$p + raw_step(all_heads)]);
//end
