import { type Finish, matmul } from "../../shaders/matmul/matmul.ts";
import { tuning, WEIGHT_BYTES, type WeightFormat } from "../../src/gpu/matrix.ts";
import { copiesOf, llama, type MicroCase } from "../case.ts";

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly finish: Finish;
  /** Default bf16. */
  readonly format?: WeightFormat;
}

const FLEDGLING: readonly Shape[] = [
  { name: "fledgling/qkv", n: 512, k: 256, finish: "store" },
  { name: "fledgling/gateUp", n: 1408, k: 256, finish: "swiglu" },
  { name: "fledgling/down", n: 256, k: 704, finish: "add" },
  { name: "fledgling/head", n: 2048, k: 256, finish: "store" },
];

function llamaShapes(software: boolean): Shape[] {
  const { name, hidden, intermediate, heads, kvHeads, headDim, vocab, draftVocab } = llama(
    software,
  );
  return [
    { name: `${name}/qkv`, n: (heads + 2 * kvHeads) * headDim, k: hidden, finish: "store" },
    { name: `${name}/o`, n: hidden, k: heads * headDim, finish: "add" },
    { name: `${name}/gateUp`, n: 2 * intermediate, k: hidden, finish: "swiglu" },
    { name: `${name}/down`, n: hidden, k: intermediate, finish: "add" },
    { name: `${name}/head`, n: vocab, k: hidden, finish: "store" },
    { name: `${name}/draft-fc`, n: hidden, k: 3 * hidden, finish: "store" },
    { name: `${name}/draft-head`, n: draftVocab, k: hidden, finish: "store" },
  ];
}

function matmulCase({ name, n, k, finish, format = "bf16" }: Shape, rows: number): MicroCase {
  const weightBytes = n * k * WEIGHT_BYTES[format];
  const outputs = finish === "swiglu" ? n / 2 : n;
  return {
    name: `matmul/${name}/${rows}`,
    make(from) {
      // Whole tiles of rows are read and written; 16 more is enough for every tile.
      const [x, out] = [from.random((rows + 16) * k), from.random((rows + 16) * outputs)];
      const shape = { rows, finish, tuning: tuning(from.gpu.info.software), label: name };
      return copiesOf(weightBytes, from).map(() =>
        matmul({ matrix: from.matrix(n, k, format), x, out }, shape)
      );
    },
  };
}

export function matmulCases(software: boolean): MicroCase[] {
  const shapes = llamaShapes(software);
  const quantized = shapes.filter(({ name }) => /(o|gateUp|down)$/.test(name)).flatMap((shape) =>
    (["q8", "q4"] as const).map((format) => ({ ...shape, name: `${shape.name}-${format}`, format }))
  );
  return [
    ...quantized.flatMap((shape) => [1, 4, 8].map((rows) => matmulCase(shape, rows))),
    ...shapes.flatMap((shape) =>
      [1, 2, 3, 4, 5, 6, 8, 12, 16].map((rows) => matmulCase(shape, rows))
    ),
    ...FLEDGLING.flatMap((shape) => [1, 4, 8].map((rows) => matmulCase(shape, rows))),
  ];
}
