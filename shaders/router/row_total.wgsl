// The sum of a number over the lanes of a workgroup, returned to every lane, with the bits of
// fragments/workgroup_sum.wgsl: each lane adds the last stage's sums and the rest itself, for a barrier takes longer.
//
// The file that uses this declares LANES, a power of two from 32 on. Counts: `totalCounts` of row_logits.ts.

var<workgroup> partial: array<vec4<f32>, $LANE_QUADS>;

fn total(x: f32, lane: u32) -> f32 {
  partial[lane / 4u][lane % 4u] = x;
  workgroupBarrier();
  //for s in FIRST_STAGES
  {
    let left = LANES >> (3u * $su + 3u);
    if (lane < left) {
      var sum = 0.0;
      //for j in EIGHT
      sum += partial[(lane + $ju * left) / 4u][lane % 4u];
      //end
      partial[lane / 4u][lane % 4u] = sum;
    }
    workgroupBarrier();
  }
  //end
  var sum = 0.0;
  //for q in REST_QUADS
  var four$q = vec4<f32>(0.0);
  //for j in EIGHT
  four$q += partial[$(q + j * REST_QUADS)];
  //end
  sum += four$q.x;
  sum += four$q.y;
  sum += four$q.z;
  sum += four$q.w;
  //end
  return sum;
}
