/** Whether two launches of one row as one (shaders/joined.ts) are faster than apart on this adapter. */
import { matmul } from "../../../shaders/matmul/matmul.ts";
import { splitKOf } from "../../../shaders/matmul/matmul_shape.ts";
import { LEAST_GAIN } from "../../../shaders/matmul/matmul_tune.ts";
import { relayedMatmuls, relays, relayWords } from "../../../shaders/matmul/relay/relay.ts";
import type { Gpu } from "../../gpu/device.ts";
import type { Operand, Plan } from "../../gpu/kernel.ts";
import { JOINED, type Launches, MOST_SPLIT_K, type Tuning } from "../../gpu/matrix.ts";
import { compiler, type Program } from "../../gpu/program.ts";
import type { DenseWeights } from "../../model/plan/dense_mlp.ts";
import { storageBuffer } from "../device/buffers.ts";
import type { LoadedWeights } from "../device/models.ts";
import { medians, MOST_MATRICES } from "./autotune.ts";
import { openLaunchTimer } from "./launch_timer.ts";

/** Of a cache's launches what is known of joined ones. */
export function knownJoined(cached: Launches): Launches {
  const rows = cached.get(JOINED);
  return new Map(rows ? [[JOINED, rows]] : []);
}

/** MLPs of the target that go as one launch by rule. */
export function joinedMlps({ target }: LoadedWeights, tuning: Tuning): DenseWeights[] {
  return target.weights.layers.flatMap(({ mlp }) => mlp.kind === "dense" ? [mlp] : [])
    .filter(({ gateUp, down }) =>
      relays({ gateUp, down, splitK: splitKOf(down, tuning), tuning }, 0)
    );
}

/** What both ways read and write. */
interface Buffers {
  readonly x: Operand;
  readonly act: Operand;
  readonly relay: Operand;
  readonly out: Operand;
}

/** Times MLPs as one launch and as two, on the loaded weights. Changes no result. */
export async function timeJoined(
  gpu: Gpu,
  mlps: readonly DenseWeights[],
  tuning: Tuning,
): Promise<Launches> {
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
    relay: buffer("relay", relayWords(widest)),
    out: buffer("sums", MOST_SPLIT_K * widest),
  };
  const { compile } = compiler(gpu);
  const programs = async (plan: (mlp: DenseWeights) => Plan): Promise<Program[]> =>
    await Promise.all(mlps.slice(0, MOST_MATRICES).map((mlp) => compile(plan(mlp))));
  const timer = stack.use(await openLaunchTimer(gpu));
  const [joined = 0, two = 0] = await medians(timer, [
    await programs((mlp) => together(mlp, buffers, tuning)),
    await programs((mlp) => apart(mlp, buffers, tuning)),
  ]);
  const stage = Number(two >= joined * (1 - LEAST_GAIN));
  return new Map([[JOINED, new Map([[1, { stage, groups: 1 }]])]]);
}

function together({ gateUp, down }: DenseWeights, buffers: Buffers, tuning: Tuning): Plan {
  const splitK = splitKOf(down, tuning);
  const of = { gateUp, down, splitK, tuning, gate: "gate_silu", label: "tune" } as const;
  return [relayedMatmuls(buffers, of)];
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
