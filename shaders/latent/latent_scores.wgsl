// Statements of latent_attention.wgsl: `pool` = an invocation's sums of q . k, of CELLS cells and a four of
// queries. Of a score's 16 sums it has PARTS pairs, or one sum.

{
  //for c in CELLS
  let key$c = (cell + $cu * CELL_GROUPS) * STRIDE;
  var score$c = vec4<f32>(0.0);
  //end
  for (var p = 0u; p < PARTS; p++) {
    //for c in CELLS
    var pair$c = vec4<f32>(0.0);
    //end
    for (var n = 0u; n < SIDES; n++) {
      let first_sum = SIDES * (lane * PARTS + p) + n;
      //for c in CELLS
      //for h in FOUR
      var dot$c_$h = 0.0;
      //end
      //end
      for (var t = 0u; t < $STEP_LOOPSu; t++) {
        //for s in STEPS
        let e$s = first_sum + 16u * (t * $STEPSu + $su);
        if ($STEP_LOOPSu * $STEPSu * 16u <= WIDTH4 || e$s < WIDTH4) {
          //for c in CELLS
          let k$c = latents[key$c + e$s];
          //end
          //for h in FOUR
          {
            let x = q[query$h + e$s];
            //for c in CELLS
            dot$c_$h = dot4(dot$c_$h, x, k$c);
            //end
          }
          //end
        }
        //end
      }
      //for c in CELLS
      pair$c += vec4<f32>(dot$c_0, dot$c_1, dot$c_2, dot$c_3);
      //end
    }
    //for c in CELLS
    score$c += pair$c;
    //end
  }
  //for c in CELLS
  pool[lane * POOL + (cell + $cu * CELL_GROUPS) * QUADS + four] = score$c;
  //end
}
