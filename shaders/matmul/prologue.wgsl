// The first lines of `main` of every matmul, of the experts' too: which outputs the invocation `thread`
// of workgroup `tile` makes. It shares the pairs from `pair` on with the other lanes of its group.
let half = MATRIX_ROWS / 2u; // output pairs of the matrix
let blocks = COLS / 8u / $BLOCK_VEC8Su; // of a row of the matrix
let lane = thread % LANES;
let pair = (tile.y * GROUPS + thread / LANES) * $PAIRSu;
