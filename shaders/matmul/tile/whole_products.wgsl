// The products of a stage of matmul_tiled.wgsl: exact sums over each vec8 times the scales of its weights, four
// rows at a time.
//for v in STAGE
//for h in TWO
{
  //for r in FOUR
  var sum_a$r = vec4<f32>(0.0);
  var sum_b$r = vec4<f32>(0.0);
  //end
  //for k in EIGHT
  {
    let at = buffer + $(8 * v + k)u * QUADS;
    let wa = staged[at + WEIGHTS_AT + by_pair];
    let wb = staged[at + WEIGHTS_AT + 8u + by_pair];
    let four = staged[at + 8u * $hu + by_row];
    //for r in FOUR
    sum_a$r = fma(vec4<f32>(four[$r]), wa, sum_a$r);
    sum_b$r = fma(vec4<f32>(four[$r]), wb, sum_b$r);
    //end
  }
  //end
  let scale_a = staged[buffer + SCALES_AT + $vu * QUADS + by_pair];
  let scale_b = staged[buffer + SCALES_AT + $vu * QUADS + 8u + by_pair];
  //for r in FOUR
  a$(4 * h + r) = fma(sum_a$r, scale_a, a$(4 * h + r));
  b$(4 * h + r) = fma(sum_b$r, scale_b, b$(4 * h + r));
  //end
}
//end
//end
