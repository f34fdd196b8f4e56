/** Guesses the graphics API of an adapter (Vulkan, Metal, OpenGL), which Deno does not report. */

/** OpenGL has few storage buffers: 16 with Mesa; Vulkan drivers have 32 (llvmpipe) and more. */
const MAX_GL_BUFFERS = 16;

/**
 * Returns the likely backend. OpenGL is recognized by having no limit on bindings (wgpu-hal gles reports the
 * largest u32) but few storage buffers; NVIDIA's Vulkan has no limit on either. Otherwise wgpu takes the
 * system's first choice.
 * @param forced DENO_WEBGPU_BACKEND
 */
export function guessBackend(
  os: typeof Deno.build.os,
  limits: Readonly<Record<string, number>> | GPUSupportedLimits,
  forced: string | undefined,
): string {
  const { maxBindingsPerBindGroup, maxStorageBuffersPerShaderStage = 0 } = limits as Readonly<
    Record<string, number>
  >;
  const unlimited = maxBindingsPerBindGroup === 0xffff_ffff;
  if (unlimited && maxStorageBuffersPerShaderStage <= MAX_GL_BUFFERS) return "gl";
  if (forced !== undefined && /^\w+$/.test(forced)) return forced.toLowerCase();
  return os === "darwin" ? "metal" : "vulkan";
}
