// The tokens of norm_from_tokens.wgsl where it writes the rows itself: those of a verify forward of chains. Of an
// embedding in one shard.

//use round/verify_row

@group(0) @binding(3) var<storage, read_write> rows: array<Row>; // [rows]
@group(0) @binding(4) var<storage, read> batch_slots: array<u32>; // [batch] slot of each sequence
@group(0) @binding(5) var<storage, read> slots: array<Slot>; // [slots]
@group(0) @binding(6) var<storage, read> drafts: array<u32>; // [slots], see drafts.wgsl

fn token_of(row: u32, lane: u32) -> u32 {
  let verified = verify_row(row);
  if (lane == 0u) {
    rows[row] = verified;
  }
  return verified.token;
}
