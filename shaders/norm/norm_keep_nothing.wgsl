// No second output of rms_norm.

fn keep(row: u32, i: u32, v: Vec8, y: Vec8) {}
