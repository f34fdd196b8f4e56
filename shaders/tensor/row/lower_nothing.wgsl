// No scales become the largest here.

fn lower_scales(lane: u32) {}
