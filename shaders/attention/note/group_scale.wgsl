// Lowers the scale of a row to that of the largest number that a workgroup has of it, as scale.wgsl does, once
// for all of them.

//use attention/note/scale

const NOTE_PLACES = 32u; // so that lanes side by side do not wait for each other

var<workgroup> group_peaks: array<atomic<u32>, NOTE_PLACES>; // bits of numbers without sign

fn note_group(row: u32, thread: u32, y: vec4<f32>) {
  let size = abs(y);
  let peak = max(max(size.x, size.y), max(size.z, size.w));
  atomicMax(&group_peaks[thread % NOTE_PLACES], bitcast<u32>(peak));
  workgroupBarrier();
  if (thread == 0u) {
    var most = 0u;
    for (var i = 0u; i < NOTE_PLACES; i++) {
      most = max(most, atomicLoad(&group_peaks[i]));
    }
    note(row, vec4<f32>(bitcast<f32>(most)));
  }
}
