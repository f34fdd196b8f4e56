// Statements of matmul_resident.wgsl that wait for x.
//#import lib/handoff_statements
