// What the kernels of matmul*.wgsl override besides.

//use matmul/common

override FIRST: u32; // column of out where the shard begins
override SPLIT_K: u32; // equal ranges of k, each with sums of its own
