import { fillParams, fillRandom } from "../../../../kernels/matmul/fill_random.ts";
import { compiler, submit } from "../../../gpu/program.ts";
import { storageBuffer } from "../../device/buffers.ts";
import type { Runner } from "../../device/runner.ts";

/**
 * Fills the keys and values of all cells with random numbers, finite in every dtype that cells are kept in. A
 * context of any length exists then without a forward over it, and takes as long to read as a real one.
 */
export async function fillCells({ gpu, models }: Pick<Runner, "gpu" | "models">): Promise<void> {
  const { target, draft, standalone } = models;
  const kept = [...target.kv, ...draft ? [draft.kv] : [], ...standalone?.model.kv ?? []];
  // Latent attention keeps both in one buffer.
  const cells = kept.flatMap(({ keys, values }) => keys === values ? [keys] : [keys, values]);
  const words = fillParams({ seed: 1, stream: 0, std: 1 });
  const params = storageBuffer(gpu, "growth.params", words.length);
  gpu.device.queue.writeBuffer(params.buffer, 0, words);
  const plan = cells.map((out, i) => fillRandom({ params, out }, `growth.cells.${i}`));
  submit(gpu, await compiler(gpu).compile(plan));
  params.buffer.destroy();
}
