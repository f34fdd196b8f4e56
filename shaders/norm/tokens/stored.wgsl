// The tokens of norm_from_tokens.wgsl where the rows were written before.

//use fragments/rows

@group(0) @binding(3) var<storage, read> rows: array<Row>; // [rows]

fn token_of(row: u32, lane: u32) -> u32 {
  return rows[row].token;
}
