// Statements of latent_attention.wgsl: `pool` = an invocation's sums of q . k of CELLS cells and SHARE fours
// of queries.

{
  //for c in CELLS
  let key$c = (cell + $cu * CELL_GROUPS) * STRIDE;
  //for a in SHARE
  var score$c_$a = vec4<f32>(0.0);
  //end
  //end
  for (var p = 0u; p < $PARTSu; p++) {
    let first_sum = $SIDESu * (lane * $PARTSu + p);
    //for c in CELLS
    //for a in SHARE
    var pair$c_$a = vec4<f32>(0.0);
    //end
    //end
    //for n in SIDES
    {
      //for c in CELLS
      //for a in SHARE
      //for h in FOUR
      var dot$c_$a_$h = 0.0;
      //end
      //end
      //end
      for (var t = 0u; t < $STEP_LOOPSu; t++) {
        //for s in STEPS
        let e$s = first_sum + $nu + 16u * (t * $STEPSu + $su);
        if ($STEP_LOOPSu * $STEPSu * 16u <= WIDTH4 || e$s < WIDTH4) {
          //for c in CELLS
          let k$c = latents[key$c + e$s];
          //end
          //for a in SHARE
          //for h in FOUR
          {
            //for z in HELD
            let x = held$a_$h_$n_$s;
            //end
            //for z in LOADED
            let x = q[query$a_$h + e$s];
            //end
            //for c in CELLS
            dot$c_$a_$h = dot4(dot$c_$a_$h, x, k$c);
            //end
          }
          //end
          //end
        }
        //end
      }
      //for c in CELLS
      //for a in SHARE
      pair$c_$a += vec4<f32>(dot$c_$a_0, dot$c_$a_1, dot$c_$a_2, dot$c_$a_3);
      //end
      //end
    }
    //end
    //for c in CELLS
    //for a in SHARE
    score$c_$a += pair$c_$a;
    //end
    //end
  }
  //for c in CELLS
  //for a in SHARE
  pool[lane * POOL + (cell + $cu * CELL_GROUPS) * QUADS + share + $au] = score$c_$a;
  //end
  //end
}
