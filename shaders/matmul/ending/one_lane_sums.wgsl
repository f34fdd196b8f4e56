// Where the outputs of an invocation that makes them alone wait for one_lane.wgsl.

var<workgroup> sums: array<vec2<f32>, $(THREADS * PAIRS * ROWS)>;
