// Statements of matmul_tensor.wgsl: what the sums of a subgroup's tile (tile_r, tile_c), which lie in workgroup memory
// from `sums` on, make. Lanes side by side have outputs side by side: four each, 16 bytes apart, take half as long again
// of a small matrix.

//for p in PREPARED
//for q in PARTS
let prepared$q = prepare(
  min(row + own_row + tile_r * $UNIT_Mu + (lane + $qu * $LANESu) / $UNIT_HALFu, rows - 1u),
  min(pair + own_column / 2u + tile_c * $UNIT_HALFu + (lane + $qu * $LANESu) % $UNIT_HALFu, half - 1u),
);
//end
//end
//for q in PARTS
{
  let i = lane + $qu * $LANESu;
  let own_r = own_row + tile_r * $UNIT_Mu + i / $UNIT_HALFu;
  let own_c = own_column + tile_c * $UNIT_Nu + i % $UNIT_HALFu;
  let r = row + own_r;
  let c = pair + own_column / 2u + tile_c * $UNIT_HALFu + i % $UNIT_HALFu;
  let at = (sums + i / $UNIT_HALFu * SUM_PITCH) * 4u + i % $UNIT_HALFu;
  if (r < rows && c < half) {
    var x_inverse = x_inverse0_$q;
    //for r in OWN_R
    x_inverse = select(x_inverse, x_inverse$r_$q, tile_r == $ru);
    //end
    let w = vec2(w_inverses[own_c], w_inverses[own_c + $UNIT_HALFu]);
    let y = vec2(sum_at(at), sum_at(at + $UNIT_HALFu)) * x_inverse * w;
    //for p in PREPARED
    finish(prepared$q, c, y);
    //end
    //for p in UNPREPARED
    epilogue(tile.z * rows + r, c, half, y);
    //end
  }
  peak$q = max(peak$q, taken());
}
//end
if (tile_c + 1u == $OWN_Cu) {
  //for q in PARTS
  gather(own_row + tile_r * $UNIT_Mu + (lane + $qu * $LANESu) / $UNIT_HALFu, peak$q, $UNIT_HALFu, lane % $UNIT_HALFu == 0u);
  peak$q = 0.0;
  //end
}
