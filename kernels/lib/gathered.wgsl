// What gather.wgsl stores of each slice of a row, in pairs of words: the count of its tokens and the mass; the winner
// of the race; then keys and tokens.

const GATHERED = $GATHEREDu; // most tokens of a slice
const SLICE_PAIRS = 2u + GATHERED;
