// The first lines of `main` of matmul*.wgsl: tiles of consecutive rows of x, and the range of k.
//use matmul/prologue
let range = blocks / SPLIT_K; // blocks of the range
let row = tile.x * $ROWSu; // first of the tile
let rows = arrayLength(&x) / (COLS / 4u);
// The lane's first vec8 of a range.
let packed = lane / packed_lanes() * packed_lanes() * $BLOCK_VEC8Su + lane % packed_lanes();
