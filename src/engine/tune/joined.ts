/** Whether two dispatches of one row are faster on this adapter as one (kernels/joined.ts). */
import { matmul } from "../../../kernels/matmul/matmul.ts";
import { shapeKey, splitKOf } from "../../../kernels/matmul/matmul_shape.ts";
import { MIN_GAIN } from "../../../kernels/matmul/matmul_tune.ts";
import {
  handoffWords,
  handsOff,
  matmulsWithHandoff,
} from "../../../kernels/matmul/handoff/handoff.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand, Plan } from "../../gpu/kernel.ts";
import { MAX_SPLIT_K, type Tuning } from "../../gpu/tuning.ts";
import { compiler, type Program } from "../../gpu/program.ts";
import type { DenseWeights } from "../../model/weights/layer_weights.ts";
import { storageBuffer } from "../device/buffers.ts";
import type { LoadedWeights } from "../device/models.ts";
import { MAX_MATRICES, medians } from "./autotune.ts";
import { openProgramTimer, openRepeatClock } from "./program_timer.ts";

/** The key of what was measured of MLPs with this shape. */
export function joinedKey({ gateUp, down }: DenseWeights): string {
  return `${shapeKey(gateUp)} ${shapeKey(down)}`;
}

/** MLPs of the target that run as one launch by rule, as far as they have the shape of the first of them. */
export function joinedMlps({ target }: LoadedWeights, tuning: Tuning): DenseWeights[] {
  const mlps = target.weights.layers.flatMap(({ mlp }) => mlp.kind === "dense" ? [mlp] : [])
    .filter(({ gateUp, down }) =>
      handsOff({ gateUp, down, splitK: splitKOf(down, tuning), tuning })
    );
  return mlps.filter((mlp) => mlps[0] && joinedKey(mlp) === joinedKey(mlps[0]));
}

/** What both ways read and write. */
interface Buffers {
  readonly x: Operand;
  readonly act: Operand;
  readonly handoff: Operand;
  readonly out: Operand;
}

/**
 * Times MLPs of one shape as one launch and as two, on the loaded weights. Returns whether to join them: unless two are
 * faster by more than noise. Changes no result.
 *
 * @param tuning with the launches that were measured: separate dispatches use them, the joined one uses the rules.
 */
export async function timeJoined(
  gpu: Gpu,
  mlps: readonly DenseWeights[],
  tuning: Tuning,
): Promise<boolean> {
  using stack = new DisposableStack();
  const widest = Math.max(...mlps.flatMap(({ gateUp, down }) => [gateUp.cols, down.cols]));
  const buffer = (label: string, words: number) => {
    const made = storageBuffer(gpu, `tune.${label}`, words);
    stack.defer(() => made.buffer.destroy());
    return made;
  };
  const buffers: Buffers = {
    x: buffer("x", widest),
    act: buffer("act", widest),
    handoff: buffer("handoff", handoffWords(widest)),
    out: buffer("sums", MAX_SPLIT_K * widest),
  };
  const { compile } = compiler(gpu);
  // Undefined where a driver does not take the kernel: it is not chosen.
  const programs = async (plan: (mlp: DenseWeights) => Plan): Promise<Program[] | undefined> =>
    await Promise.all(mlps.slice(0, MAX_MATRICES).map((mlp) => compile(plan(mlp))))
      .catch(() => undefined);
  const timer = stack.use(await openProgramTimer(gpu, openRepeatClock));
  const [joined = Infinity, two = Infinity] = await medians(timer, [
    await programs((mlp) => together(mlp, buffers, { ...tuning, launches: undefined })),
    await programs((mlp) => apart(mlp, buffers, tuning)),
  ]);
  return two >= joined * (1 - MIN_GAIN);
}

function together({ gateUp, down }: DenseWeights, buffers: Buffers, tuning: Tuning): Plan {
  const splitK = splitKOf(down, tuning);
  const of = { gateUp, down, splitK, tuning, gate: "gate_silu", label: "tune" } as const;
  return [matmulsWithHandoff(buffers, of)];
}

function apart(
  { gateUp, down }: DenseWeights,
  { x, act, out }: Buffers,
  tuning: Tuning,
): Plan {
  const splitK = splitKOf(down, tuning);
  const launch = { rows: 1, tuning, label: "tune" };
  return [
    ...matmul({ matrix: gateUp, x, out: act }, { ...launch, epilogue: "swiglu" }),
    ...matmul({ matrix: down, x: act, out }, { ...launch, epilogue: "store", splitK }),
  ];
}
