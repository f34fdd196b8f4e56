// Keeps which cells a row of the tile sees.

if (thread == $ru) {
  seen[thread] = vec2<u32>(visible_begin(own), visible_end(own));
}
