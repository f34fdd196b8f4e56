// What attention over latents declares alike: the sums of chunks of cells, brought into workgroup memory as floats.
// Slot:
//   kv_load: `load_key` and `vec8_of` of a dtype (kv/load_*.wgsl), over `keys`.

//use latent/latent_runs
//use kv_load

const WIDTH4 = 2u * VEC8S; // vec4
const CELLS = $CELLSu; // of an invocation, for the scores
const CELL_GROUPS = 16u / CELLS;
const STRIDE = WIDTH4 + 1u; // of a cell; odd: cells start in different banks
const SPREAD = THREADS / CHUNK; // invocations that load a cell

var<private> values: array<vec4<u32>, 1>; // of `load_value`, which is not called: values are parts of keys
