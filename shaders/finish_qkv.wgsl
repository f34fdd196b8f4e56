// Epilogue of matmul over [q; k; v] whose rope pairs lie half a shard apart (`heads` of the loader):
// turns q into `out` and k, and stores k and v.

fn finish(row: u32, c: u32, half: u32, sum: vec2<f32>) {
  let pair = FIRST + c;
  place_head(row, pair / (HEAD_DIM / 2u), pair % (HEAD_DIM / 2u), sum);
}
