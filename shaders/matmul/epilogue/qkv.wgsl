// Epilogue of matmul over [q; k; v] whose rope pairs are half a shard apart (`heads` of the loader):
// rotates q and k, stores q in `out` and k and v in the pages. Slot:
//   bias: `fn biased(sum, at)` of the elements at and at + HEAD_DIM / 2 of q, k and v (qkv_*.wgsl).

//use fragments/place_head
//use bias

fn epilogue(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let pair = FIRST + c;
  let head = pair / (HEAD_DIM / 2u);
  let w = pair % (HEAD_DIM / 2u);
  place_head(row, head, w, biased(sum, head * HEAD_DIM + w));
}
