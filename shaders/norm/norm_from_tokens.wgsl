// Input of rms_norm: the embedding of row r's token, times SCALE; rows whose token is in another shard of the
// embedding are not written. Slots:
//   weights: `load_block` and `vec8_0` of a float format (weights/weights_*.wgsl).
//   rows: `fn token_of(row, lane)`, its token; bindings 3 and on (norm/tokens/*.wgsl).

//use weights
//use rows

override SHARD_FIRST: u32; // first token of the shard
override SHARD_ROWS: u32;
override SCALE: f32;

fn source(row: u32, lane: u32) -> u32 {
  let token = token_of(row, lane) - SHARD_FIRST; // wraps below the shard
  return select(NO_ROW, token, token < SHARD_ROWS);
}

fn load(token: u32, i: u32) -> Vec8 {
  let e = vec8_0(load_block(token * (COLS / 8u) + i));
  return Vec8(e.lo * SCALE, e.hi * SCALE);
}
