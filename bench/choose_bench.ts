import { choose } from "../shaders/choose.ts";
import { tuning } from "../src/gpu/matrix.ts";
import { openDevice } from "../tests/gpu/device.ts";
import { numbers } from "../tests/gpu/numbers.ts";
import { packRows, packSlots } from "../tests/shaders/rows.ts";
import { benchPlan } from "./repeat.ts";

const device = await openDevice();

const SAMPLINGS = [
  { name: "greedy", temperature: 0 },
  { name: "temperature", temperature: 0.7 },
  { name: "top-p", temperature: 0.7, topP: 0.95 },
  { name: "top-k and top-p", temperature: 0.7, topK: 40, topP: 0.95 },
] as const;

for (const vocab of [2048, 128_256]) {
  for (const count of [1, 8]) {
    const logits = device.floats(numbers(count * vocab, 1));
    const rows = device.words(packRows(Array(count).fill({})));
    const chosen = device.filled(count);
    for (const { name, ...sampling } of SAMPLINGS) {
      const slots = device.words(packSlots([sampling]));
      const { rowLanes: lanes } = tuning(device.gpu.info.software);
      const plan = [
        choose({ logits, rows, slots, chosen }, { count, vocab, stride: vocab, lanes }),
      ];
      const group = `choose, ${count} rows of ${vocab}`;
      await benchPlan(device, plan, { group, name });
    }
  }
}
