// What stands for nothing where a slot, a row or a token is expected.

const NO_SLOT = 0xffffffffu; // a place of the batch without a sequence
const NO_ROW = 0xffffffffu; // an index of a row that is neither read nor written
const NOT_A_TOKEN = 0xffffffffu; // what logits give that are not numbers
