// Epilogue of matmul over [q; k; v] whose rope pairs lie half a shard apart (`heads` of the loader):
// turns q into `out` and k, and stores k and v. `biased` comes from a qkv_*.wgsl.

fn finish(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let pair = FIRST + c;
  let head = pair / (HEAD_DIM / 2u);
  let w = pair % (HEAD_DIM / 2u);
  place_head(row, head, w, biased(sum, head * HEAD_DIM + w));
}
