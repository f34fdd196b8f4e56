// combined.wgsl reads what depends on what it reads: nothing is asked for before the weights.
