// How the staged kernels read a range of k whose last stage is a part of one ($WHOLE 0): its weights are never
// read behind the range, and x is 0 there, which leaves every sum as it is. Where stages are whole nothing is done.

const WHOLE = $WHOLEu == 1u;

// Block `i` of a row, counted from a lane's first, or the lane's last of the range.
fn within(i: u32, last: u32) -> u32 {
  return select(min(i, last), i, WHOLE);
}
