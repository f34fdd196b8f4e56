// How matmul_staged.wgsl stores x for dot/whole.wgsl and dot/packed.wgsl, which round an eight together.
put_eight(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
