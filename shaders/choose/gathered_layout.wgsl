// What gather.wgsl leaves of a slice, in pairs of words: the count of its tokens and the mass; the winner of
// the race; keys and tokens.

const GATHERED = $GATHEREDu; // most tokens of a slice
const SLICE_PAIRS = 2u + GATHERED;
