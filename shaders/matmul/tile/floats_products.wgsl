// The products of a stage of matmul_tiled.wgsl, k by k.
//for v in STAGE
//for k in EIGHT
{
  let at = buffer + $(8 * v + k)u * QUADS;
  let wa = staged[at + WEIGHTS_AT + by_pair];
  let wb = staged[at + WEIGHTS_AT + 8u + by_pair];
  //for h in TWO
  let x$h = staged[at + 8u * $hu + by_row];
  //for r in FOUR
  a$(4 * h + r) = fma(vec4<f32>(x$h[$r]), wa, a$(4 * h + r));
  b$(4 * h + r) = fma(vec4<f32>(x$h[$r]), wb, b$(4 * h + r));
  //end
  //end
}
//end
//end
