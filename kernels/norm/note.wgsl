//#if NOTED
// Notes the scale of each normed row, by its largest number. The row's scales of the inputs of the layer's
// other matmuls become the largest, for their producers to lower: one of attention's output, and as many of
// the gated activations as a row has jobs in any layer.

//#import lib/scale_of

override LOWERED_ROWS: u32; // of attention's output, in lowered
override ROW_JOBS: u32;

// Of the output, [rows].
@group(0) @binding(14) var<storage, read_write> scales: array<f32>;
// Of attention's output, [LOWERED_ROWS], and of the gated activations, [rows, ROW_JOBS].
@group(0) @binding(15) var<storage, read_write> lowered: array<f32>;

var<workgroup> note_peaks: array<f32, LANES>;

fn seen(peak: f32, y: Vec8) -> f32 {
  let size = max(abs(y.lo), abs(y.hi));
  return max(max(peak, max(size.x, size.y)), max(size.z, size.w));
}

fn note(row: u32, lane: u32, peak: f32) -> f32 {
  for (var j = lane; j < ROW_JOBS; j += LANES) {
    lowered[LOWERED_ROWS + row * ROW_JOBS + j] = bitcast<f32>(LARGEST_SCALE);
  }
  note_peaks[lane] = peak;
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var highest = 0.0;
      //#for j in 8
      highest = max(highest, note_peaks[lane + $ju * left]);
      //#endfor
      note_peaks[lane] = highest;
    }
    workgroupBarrier();
  }
  //#endfor
  var highest = 0.0;
  //#for j in REST
  highest = max(highest, note_peaks[$j]);
  //#endfor
  let scale = scale_of(highest);
  if (lane == 0u) {
    scales[row] = scale;
    lowered[row] = bitcast<f32>(LARGEST_SCALE);
  }
  return scale;
}
//#else
// Nothing is noted of rms_norm's rows.

fn seen(peak: f32, y: Vec8) -> f32 {
  return peak;
}

fn note(row: u32, lane: u32, peak: f32) -> f32 {
  return 1.0;
}
//#endif
