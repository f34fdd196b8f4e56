//#if STORES_SCALES
// Stores the scale (scale_of.wgsl) of each normed row, by its largest number, for matrix units. The row's scales of the
// inputs of the layer's other matmuls are reset to LARGEST_SCALE, for the kernels that compute those inputs to reduce:
// one of attention's output, and as many of the gated activations as a row has jobs in any layer.
//
// The kernel declares LANES, a power of two. Parameters: STAGES and REST (`foldCounts`).

//#import lib/scale_of

override REDUCED_ROWS: u32; // of attention's output, in reduced
override ROW_JOBS: u32; // gated activations of a row

// Scales of the output, [rows].
@group(0) @binding(14) var<storage, read_write> scales: array<f32>;
// Scales of attention's output, [REDUCED_ROWS], and of the gated activations, [rows, ROW_JOBS].
@group(0) @binding(15) var<storage, read_write> reduced: array<f32>;

var<workgroup> lane_peaks: array<f32, LANES>;

// The largest size of y's numbers and of `peak`.
fn peak_of(peak: f32, y: Vec8) -> f32 {
  let size = max(abs(y.lo), abs(y.hi));
  return max(max(peak, max(size.x, size.y)), max(size.z, size.w));
}

// Stores and returns the scale of a row; `peak` is the largest of the numbers that this lane has seen.
fn store_scales(row: u32, lane: u32, peak: f32) -> f32 {
  for (var j = lane; j < ROW_JOBS; j += LANES) {
    reduced[REDUCED_ROWS + row * ROW_JOBS + j] = bitcast<f32>(LARGEST_SCALE);
  }
  lane_peaks[lane] = peak;
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var highest = 0.0;
      //#for j in 8
      highest = max(highest, lane_peaks[lane + $ju * left]);
      //#endfor
      lane_peaks[lane] = highest;
    }
    workgroupBarrier();
  }
  //#endfor
  var highest = 0.0;
  //#for j in REST
  highest = max(highest, lane_peaks[$j]);
  //#endfor
  let scale = scale_of(highest);
  if (lane == 0u) {
    scales[row] = scale;
    reduced[row] = bitcast<f32>(LARGEST_SCALE);
  }
  return scale;
}
//#else
// Nobody reads the scales of these rows.

fn peak_of(peak: f32, y: Vec8) -> f32 {
  return peak;
}

fn store_scales(row: u32, lane: u32, peak: f32) -> f32 {
  return 1.0;
}
//#endif
