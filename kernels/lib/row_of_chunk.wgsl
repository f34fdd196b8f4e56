// The row of a stage to which a lane stores chunk `at` of eight numbers; a row has CHUNKS chunks. Eight lanes store at
// a time, 16 bytes each, and rows begin an odd number of chunks apart in workgroup memory. With $SPREAD, where CHUNKS
// divides eight, the rows of those lanes are CHUNKS apart, so that no two of the eight meet in a bank. The number of
// rows is a multiple of eight then.

fn row_of_chunk(at: u32) -> u32 {
  //#if SPREAD
  return at / (8u * CHUNKS) * 8u + at / 8u % CHUNKS + at % 8u / CHUNKS * CHUNKS;
  //#else
  return at / CHUNKS;
  //#endif
}
