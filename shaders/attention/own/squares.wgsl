// The squares of each invocation's pairs, where heads are normed.
//for n in NORMED
if (head <= VALUE) {
  var square = 0.0;
  //for p in PAIRS
  if (w$p < HALF) {
    square = squares_of(square, pair$p);
  }
  //end
  squares[thread / 4u][thread % 4u] = square;
}
workgroupBarrier();
//end
