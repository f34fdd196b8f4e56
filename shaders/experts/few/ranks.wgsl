// How few rows' workgroups find the expert of a rank among the keys of a row's logits, `ranked`.

override VECTORS: u32; // PADDED / 4

var<workgroup> ranked: array<vec4<u32>, VECTORS>; // keys of the logits

// As large as the logit: an integer is compared in one instruction, and one less than another is a bound.
fn key_of(logit: f32) -> u32 {
  let bits = bitcast<u32>(select(logit, 0.0, logit == 0.0)); // zeros are equal
  return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}

// Experts that are better than e: larger ones, and of those before it, equal ones.
fn rank_of(e: u32) -> u32 {
  let own = ranked[e / 4u][e % 4u];
  let mates = vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(e % 4u);
  var rank = select(vec4<u32>(0u), vec4<u32>(1u), mates & (ranked[e / 4u] == vec4<u32>(own)));
  for (var i = 0u; i < VECTORS; i += 2u) {
    //for u in RANKED
    {
      let least = vec4<u32>(select(own, own - 1u, i + $uu < e / 4u));
      rank += select(vec4<u32>(0u), vec4<u32>(1u), ranked[i + $uu] > least);
    }
    //end
  }
  return rank.x + rank.y + rank.z + rank.w;
}
