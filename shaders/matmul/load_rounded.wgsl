// How matmul_staged.wgsl stores x for dot/whole.wgsl and dot/packed.wgsl, which round a vec8 together.
put_vec8(r, part, x[at + 2u * part], x[at + 2u * part + 1u]);
