/** The GPU that the choices of kernels were measured on. */

/** Multiprocessors of an NVIDIA H200. */
export const MULTIPROCESSORS = 132;
