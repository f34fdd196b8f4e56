/**
 * Milliseconds of work that raise a device's clocks, which idle devices lower; 0 of a software adapter. Rounds of a
 * small model wait for the host in between: on an H200 matmuls took up to twice as long behind 200 ms of them.
 */
export function warmMs({ software }: { readonly software: boolean }): number {
  return software ? 0 : 800;
}
