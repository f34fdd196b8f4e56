// The draft's choice comes without its confidence.

fn tell(slot: u32, all: Partial) {}
