// Input of rms_norm: the embedding of row r's token, times SCALE; rows whose token lies in another shard of the
// embedding are left alone. `load_raw`, `eight_0` and `Row` come from the files around.

override SHARD_FIRST: u32; // first token of the shard
override SHARD_ROWS: u32;
override SCALE: f32;

@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]

fn source(row: u32) -> u32 {
  let token = rows[row].token - SHARD_FIRST; // wraps below the shard
  return select(NO_ROW, token, token < SHARD_ROWS);
}

fn load(token: u32, i: u32) -> Eight {
  let e = eight_0(load_raw(token * (COLS / 8u) + i));
  return Eight(e.lo * SCALE, e.hi * SCALE);
}
