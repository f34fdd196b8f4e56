// The best of the argmaxes of the lanes of a workgroup, returned to every lane.

//#import lib/partial_argmax
//#import lib/workgroup_partial

fn best_of(x: Argmax, lane: u32) -> Argmax {
  return joined_lanes(x, lane);
}
