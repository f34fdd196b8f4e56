// Notes the scale of each row that rms_norm writes, by its largest number. The row's scales of the inputs
// of the layer's other matmuls become the largest, for their producers to lower.

//use tensor/scale_of

override LOWERED_ROWS: u32; // row stride of lowered

// Of the output, [rows].
@group(0) @binding(14) var<storage, read_write> scales: array<f32>;
// Of attention's output and of the gated activations, [2, LOWERED_ROWS].
@group(0) @binding(15) var<storage, read_write> lowered: array<f32>;

var<workgroup> peaks: array<f32, LANES>;

fn seen(peak: f32, y: Vec8) -> f32 {
  let size = max(abs(y.lo), abs(y.hi));
  return max(max(peak, max(size.x, size.y)), max(size.z, size.w));
}

fn note(row: u32, lane: u32, peak: f32) {
  peaks[lane] = peak;
  workgroupBarrier();
  //for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var highest = 0.0;
      //for j in EIGHT
      highest = max(highest, peaks[lane + $ju * left]);
      //end
      peaks[lane] = highest;
    }
    workgroupBarrier();
  }
  //end
  if (lane == 0u) {
    var highest = 0.0;
    //for j in REST
    highest = max(highest, peaks[$j]);
    //end
    scales[row] = scale_of(highest);
    lowered[row] = bitcast<f32>(LARGEST_SCALE);
    lowered[LOWERED_ROWS + row] = bitcast<f32>(LARGEST_SCALE);
  }
}
