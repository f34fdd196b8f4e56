import { matmul, type PlainEpilogue } from "../../kernels/matmul/matmul.ts";
import { tuning } from "../../src/gpu/tuning.ts";
import { WEIGHT_BYTES, type WeightFormat } from "../../src/gpu/weight_format.ts";
import { copiesOf, llama, type MicroCase } from "../case.ts";

interface Shape {
  readonly name: string;
  readonly n: number;
  readonly k: number;
  readonly epilogue: PlainEpilogue;
  /** Default bf16. */
  readonly format?: WeightFormat;
}

const FLEDGLING: readonly Shape[] = [
  { name: "fledgling/qkv", n: 512, k: 256, epilogue: "store" },
  { name: "fledgling/gateUp", n: 1408, k: 256, epilogue: "swiglu" },
  { name: "fledgling/down", n: 256, k: 704, epilogue: "add" },
  { name: "fledgling/head", n: 2048, k: 256, epilogue: "store" },
];

function llamaShapes(software: boolean): Shape[] {
  const { name, hidden, intermediate, heads, kvHeads, headDim, vocab, draftVocab } = llama(
    software,
  );
  return [
    { name: `${name}/qkv`, n: (heads + 2 * kvHeads) * headDim, k: hidden, epilogue: "store" },
    { name: `${name}/o`, n: hidden, k: heads * headDim, epilogue: "add" },
    { name: `${name}/gateUp`, n: 2 * intermediate, k: hidden, epilogue: "swiglu" },
    { name: `${name}/down`, n: hidden, k: intermediate, epilogue: "add" },
    { name: `${name}/head`, n: vocab, k: hidden, epilogue: "store" },
    { name: `${name}/draft-fc`, n: hidden, k: 3 * hidden, epilogue: "store" },
    { name: `${name}/draft-head`, n: draftVocab, k: hidden, epilogue: "store" },
  ];
}

function matmulCase({ name, n, k, epilogue, format = "bf16" }: Shape, rows: number): MicroCase {
  const weightBytes = n * k * WEIGHT_BYTES[format];
  const outputs = epilogue === "swiglu" ? n / 2 : n;
  return {
    name: `matmul/${name}/${rows}`,
    make(from) {
      // Kernels read and write whole tiles of rows; 16 more rows are enough for every tile.
      const [x, out] = [from.random((rows + 16) * k), from.random((rows + 16) * outputs)];
      const shape = { rows, epilogue, tuning: tuning(from.gpu.info.software), label: name };
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
