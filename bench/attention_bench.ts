import { attention } from "../shaders/attention.ts";
import { tuning } from "../src/gpu/matrix.ts";
import { PAGE } from "../src/model/rows_layout.ts";
import { openDevice } from "../tests/gpu/device.ts";
import { blockTable, packRows } from "../tests/shaders/rows.ts";
import { benchPlan } from "./repeat.ts";

const device = await openDevice();

const MODELS = [
  { name: "fledgling", heads: 8, kvHeads: 4, headDim: 32 },
  { name: "4096 wide", heads: 32, kvHeads: 8, headDim: 128 },
] as const;

for (const { name, ...heads } of MODELS) {
  for (const context of [128, 1024]) {
    const tablePages = context / PAGE;
    const pages = device.words(blockTable(1, tablePages));
    const cells = context * heads.kvHeads * heads.headDim;
    const [keys, values] = [device.filled(cells, 1), device.filled(cells, 1)];
    for (const count of [1, 8]) {
      const width = count * heads.heads * heads.headDim;
      const rows = device.words(packRows(Array(count).fill({ base: context })));
      const buffers = {
        q: device.filled(width, 1),
        keys,
        values,
        rows,
        pages,
        out: device.filled(width),
      };
      const shape = { ...heads, tablePages, count, tuning: tuning(device.gpu.info.software) };
      const plan = [attention(buffers, { ...shape, label: name })];
      const group = `attention ${name}, ${context} tokens of context`;
      await benchPlan(device, plan, { group, name: `${count} rows` });
    }
  }
}
