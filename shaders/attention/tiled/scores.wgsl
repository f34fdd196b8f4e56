// Of attention_tiled.wgsl: the dot products of a split's keys with all queries, in `score<query>_<cell>`; <query> of
// $SCORED, <cell> of 4. Expects where they are: `q_from<load>`, `q_line<load>`, `q_to<load>`, `k_place<load>`,
// `k_line<load>` and `k_to<load>`.

//for a in SCORED
//for b in FOUR
var score$a_$b = 0.0;
//end
//end
//for u in Q_LOADS
var q_lo$u = q[q_from$u + eighth(0u, q_eighth$u % EIGHTS)];
var q_hi$u = q[q_from$u + VEC8S + eighth(0u, q_eighth$u % EIGHTS)];
//end
//for u in K_LOADS
var key$u = load_key(k_place$u, eighth(0u, k_eighth$u % EIGHTS));
//end
for (var lane = 0u; lane < LANES; lane += $AT_ONCEu) {
  //for u in Q_LOADS
  pool[q_line$u][q_to$u] = q_lo$u;
  pool[q_line$u][q_to$u + 1u] = q_hi$u;
  //end
  //for u in K_LOADS
  {
    let k = vec8_of(key$u);
    pool[k_line$u][k_to$u] = k.lo;
    pool[k_line$u][k_to$u + 1u] = k.hi;
  }
  //end
  workgroupBarrier();
  let next = min(lane + $AT_ONCEu, LANES - $AT_ONCEu);
  //for u in Q_LOADS
  q_lo$u = q[q_from$u + eighth(next, q_eighth$u % EIGHTS)];
  q_hi$u = q[q_from$u + VEC8S + eighth(next, q_eighth$u % EIGHTS)];
  //end
  //for u in K_LOADS
  key$u = load_key(k_place$u, eighth(next, k_eighth$u % EIGHTS));
  //end
  //for j in AT_ONCE
  {
    //for a in SCORED
    //for b in FOUR
    var dot$a_$b = 0.0;
    //end
    //end
    //for s in STEPS
    {
      const e = 2u * ($su * $AT_ONCEu + $ju);
      //for b in FOUR
      let k$b = Vec8(pool[cell + $bu * 16u][KEY_AT + e], pool[cell + $bu * 16u][KEY_AT + e + 1u]);
      //end
      //for a in SCORED
      {
        let own = Vec8(pool[$(a * GROUPS)u + group][e], pool[$(a * GROUPS)u + group][e + 1u]);
        //for b in FOUR
        dot$a_$b = add8(dot$a_$b, own, k$b);
        //end
      }
      //end
    }
    //end
    //for a in SCORED
    //for b in FOUR
    score$a_$b += dot$a_$b;
    //end
    //end
  }
  //end
  workgroupBarrier();
}
