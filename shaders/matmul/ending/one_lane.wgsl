// The end of a matmul's `main` where an invocation makes its outputs alone: they go through workgroup
// memory to a loop, because `epilogue` may be long and software adapters compile slowly.
//for p in PAIRS
//for r in ROWS
sums[thread * $(PAIRS * ROWS)u + $(p * ROWS + r)u] = vec2<f32>(a$p_$r, b$p_$r);
//end
//end
for (var i = 0u; i < $(PAIRS * ROWS)u; i++) {
  let c = pair + i / $ROWSu;
  let r = row + i % $ROWSu;
  if (c < half && r < rows) {
    epilogue(tile.z * rows + r, c, half, sums[thread * $(PAIRS * ROWS)u + i]);
  }
}
