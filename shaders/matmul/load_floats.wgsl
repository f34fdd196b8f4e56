// How matmul_staged.wgsl stores x for dot/floats.wgsl: by halves of vec8s, so that even one row keeps every
// invocation busy. Not in a function, which made one row of a [6144, 4096] a tenth slower on an H200.
staged[(r * 2u + part % 2u) * $STAGEu + part / 2u] = x[at + part];
