import { equal } from "node:assert/strict";
import { guessBackend } from "../../src/gpu/backend.ts";

Deno.test("a backend is guessed by the limits and the system", () => {
  const unlimited = { maxBindingsPerBindGroup: 2 ** 32 - 1 };
  const mesa = { ...unlimited, maxStorageBuffersPerShaderStage: 16 };
  const nvidia = { ...unlimited, maxStorageBuffersPerShaderStage: 524_288 };
  equal(guessBackend("linux", mesa, undefined), "gl");
  equal(guessBackend("linux", nvidia, undefined), "vulkan");
  equal(guessBackend("linux", {}, undefined), "vulkan");
  equal(guessBackend("darwin", {}, undefined), "metal");
  equal(guessBackend("windows", {}, "DX12"), "dx12");
  // Several may be named; which one answered is not told.
  equal(guessBackend("linux", {}, "vulkan,gl"), "vulkan");
});
