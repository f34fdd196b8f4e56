// Prologue of matmul_resident.wgsl: x is stored as it is, by prologue_statements_rows.wgsl alone.
