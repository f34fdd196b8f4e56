// Statements of latent_attention.wgsl: the chunk's weighted sums of latents, added to those before it.

//for d in SPANS
if (($du + 1u) * DIMS <= RANK4 || dim + $du * DIMS < RANK4) {
  //for b in TIMES
  {
    //for a in BOTH
    //for h in FOUR
    var part$a_$h = vec4<f32>(0.0);
    //end
    //end
    for (var c = 0u; c < CHUNK; c += $AT_ONCEu) {
      //for c in AT_ONCE
      {
        let value = latents[(c + $cu) * STRIDE + dim + $du * DIMS];
        //for a in BOTH
        let weight$a = weights[(c + $cu) * QUADS + own + $(b * BOTH + a)u];
        //for h in FOUR
        part$a_$h = fma(vec4<f32>(weight$a[$h]), value, part$a_$h);
        //end
        //end
      }
      //end
    }
    //for a in BOTH
    {
      let shrink = shrinks[own + $(b * BOTH + a)u];
      let share = shares[own + $(b * BOTH + a)u];
      //for h in FOUR
      sum$d_$(b * BOTH + a)_$h = fma(
        part$a_$h,
        vec4<f32>(share[$h]),
        sum$d_$(b * BOTH + a)_$h * shrink[$h],
      );
      //end
    }
    //end
  }
  //end
}
//end
