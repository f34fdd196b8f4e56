// Epilogue of matmul over [q; k; v] whose rope pairs are half a shard apart (`heads` of the loader):
// rotates q and k, stores q in `out` and k and v in the pages. Slot:
//   bias: `fn biased(sum, at)` of the elements at and at + HEAD_DIM / 2 of q, k and v (qkv_*.wgsl).

//use fragments/place_head
//use bias

// All that is read to place the elements c and c + half of a row, but the bias.
fn prepare(row: u32, c: u32) -> HeadPlace {
  let pair = FIRST + c;
  return head_place(row, pair / (HEAD_DIM / 2u), pair % (HEAD_DIM / 2u));
}

fn finish(place: HeadPlace, c: u32, sum: vec2<f32>) {
  let pair = FIRST + c;
  let head = pair / (HEAD_DIM / 2u);
  let w = pair % (HEAD_DIM / 2u);
  put_head(place, head, w, biased(sum, head * HEAD_DIM + w));
}

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  finish(prepare(row, c), c, sum);
}
