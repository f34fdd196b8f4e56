// No further level after draft_choose.

fn next(place: u32, slot: u32, token: u32) {}
