// How the staged kernels read a range of k whose last stage is only partly filled ($WHOLE 0): no weights are read
// behind the range, and x is 0 there, which leaves every sum as it is. Whole stages need none of this.

const WHOLE = $WHOLEu == 1u;

// The index of block `i` of a row, counted from a lane's first, but at most that of the lane's last block of the range.
fn within(i: u32, last: u32) -> u32 {
  return select(min(i, last), i, WHOLE);
}
