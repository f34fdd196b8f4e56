// The sum of a value over the lanes of a workgroup, returned to every lane, in one order: while more
// than 16 partial sums are left, lane l of the first eighth adds those at l, l + 1/8, l + 2/8, ...
// of their number; the rest is added in order.
//
// The file that uses this declares LANES, a power of two, and `Sum`, the type. Counts: `foldCounts`.

var<workgroup> partial: array<Sum, LANES>;

fn total(x: Sum, lane: u32) -> Sum {
  partial[lane] = x;
  workgroupBarrier();
  //#for s in STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var sum = Sum();
      //#for j in 8
      sum += partial[lane + $ju * left];
      //#endfor
      partial[lane] = sum;
    }
    workgroupBarrier();
  }
  //#endfor
  var sum = Sum();
  //#for j in REST
  sum += partial[$j];
  //#endfor
  workgroupBarrier(); // before the next call writes
  return sum;
}
