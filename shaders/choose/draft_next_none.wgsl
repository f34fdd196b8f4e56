// No further level after draft_choose.

fn next(lane: u32, slot: u32, token: u32) {}
