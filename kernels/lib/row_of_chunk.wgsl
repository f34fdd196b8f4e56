// Which row of a stage in workgroup memory a lane brings, that with chunk `at` of eight numbers; CHUNKS of them are a
// row's. Eight lanes store at a time, 16 bytes each, and rows are an odd number of chunks apart: with $SPREAD, where
// CHUNKS divides eight, their rows are CHUNKS apart, so that the eight meet in no bank. Rows are a multiple of eight
// then.

fn row_of_chunk(at: u32) -> u32 {
  //#if SPREAD
  return at / (8u * CHUNKS) * 8u + at / 8u % CHUNKS + at % 8u / CHUNKS * CHUNKS;
  //#else
  return at / CHUNKS;
  //#endif
}
