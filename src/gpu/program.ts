import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../errors.ts";
import { type Gpu, isSoftware } from "./device.ts";
import type { CellRange, Cost, Dispatch, Kernel, Operand, Plan } from "./kernel.ts";
import { uniformConstants } from "./uniforms.ts";
import { workgroupMemory } from "./workgroup.ts";

/** A dispatch that is ready to be encoded. */
export interface Step {
  readonly pipeline: GPUComputePipeline;
  readonly bound: BoundGroup;
  /** Binds the constants that are stored in a uniform buffer, see src/gpu/uniforms.ts. */
  readonly uniforms: GPUBindGroup | undefined;
  readonly workgroups: readonly [number, number, number];
  readonly cellsEach: number | undefined;
  readonly groupsBefore: number | undefined;
  readonly forCells: CellRange | undefined;
  readonly label: string;
  /** The kernel's name. */
  readonly kernel: string;
  readonly work: Cost | undefined;
}

/** A bind group that steps share. It is made anew when one of its buffers is replaced, undefined while one is gone. */
interface BoundGroup {
  group: GPUBindGroup | undefined;
  /** The different steps that have it. */
  readonly steps: Step[];
}

/** A plan with its pipelines and bind groups made: replaying it creates nothing. */
export interface Program {
  readonly steps: readonly Step[];
}

/** Counts what was created, so that a test can show that a round creates nothing. */
export interface CreationCounts {
  modules: number;
  pipelines: number;
  bindGroups: number;
}

/**
 * Turns plans into programs; kernels of one name share a module, and with equal constants a pipeline.
 * Both functions throw where two kernels of one name have different WGSL.
 */
export interface Compiler {
  readonly created: Readonly<CreationCounts>;
  /** Like `compile`, without waiting: other errors are thrown by the next `gpu.check()`. */
  prepare(plan: Plan): Program;
  /**
   * @throws Error with the compiler's words when WGSL, bindings or limits do not fit.
   * @throws UsageError when a kernel has more storage buffers or workgroup memory than the adapter gives a shader.
   */
  compile(plan: Plan): Promise<Program>;
  /**
   * Binds `to` wherever plans name `from`, one of the movable buffers, in existing programs and in later
   * ones. With undefined the buffer is gone: programs that bind it cannot run until it is replaced again.
   * Command buffers that were encoded before keep the old buffer.
   */
  replace(from: GPUBuffer, to: GPUBuffer | undefined): void;
}

/** @param movable buffers that `replace` may replace. */
export function compiler(
  gpu: Gpu,
  movable: ReadonlySet<GPUBuffer> = new Set(),
): Compiler {
  const { device } = gpu;
  /** The current replacement of each movable buffer; `uses` has the functions that bind it again. */
  const moved = new Map<GPUBuffer, GPUBuffer | undefined>();
  const uses = new Map<GPUBuffer, (() => void)[]>();
  const created: CreationCounts = { modules: 0, pipelines: 0, bindGroups: 0 };
  const firsts = new Map<string, Use>();
  const modules = new Map<string, GPUShaderModule>();
  const pipelines = new Map<string, GPUComputePipeline>();
  /** Promises of pipelines, pending and settled. */
  const making = new Map<string, Promise<void>>();
  /**
   * Bind groups by pipeline and bound buffers, with their steps: programs of neighbouring sizes have many in common.
   * V8 marks every live object in each full garbage collection, so fewer objects make those shorter.
   */
  const bound = new Map<string, BoundGroup>();
  /** Numbers of buffers, for keys. */
  const numbers = new WeakMap<GPUBuffer, number>();
  let numbered = 0;

  // The name is checked too: a CPU may run the kernels although `software` is false, which selects those for hardware.
  const { adapter, software } = gpu.info;
  const onCpu = isSoftware(adapter, software);
  const uniforms = onCpu ? uniformConstants(device) : undefined;
  // A CPU's workgroup memory is plain memory.
  const maxMemory = onCpu ? Infinity : gpu.limits.maxComputeWorkgroupStorageSize;

  /** The constants that a pipeline is made with. */
  function overridesOf(launch: Dispatch): Readonly<Record<string, number>> {
    return uniforms ? uniforms.overridesOf(launch) : launch.constants;
  }

  function keyOf(launch: Dispatch): string {
    return JSON.stringify([launch.kernel.name, overridesOf(launch)]);
  }

  /** Throws where a kernel must not be compiled. */
  function admit(launch: Dispatch): void {
    const { kernel, label } = launch;
    const first = firsts.getOrInsertComputed(kernel.name, () => {
      checkBindings(kernel, gpu.limits);
      return { kernel, label };
    });
    if (first.kernel.code !== kernel.code) throw new Error(twoSources(first, { kernel, label }));
    if (!pipelines.has(keyOf(launch))) checkMemory(launch, maxMemory);
  }

  function descriptorOf(launch: Dispatch): GPUComputePipelineDescriptor {
    const { kernel } = launch;
    const module = modules.getOrInsertComputed(kernel.name, () => {
      created.modules++;
      const code = uniforms ? uniforms.codeOf(kernel) : kernel.code;
      return device.createShaderModule({ label: kernel.name, code });
    });
    created.pipelines++;
    return {
      label: kernel.name,
      layout: "auto",
      compute: { module, entryPoint: "main", constants: overridesOf(launch) },
    };
  }

  function pipeline(launch: Dispatch): GPUComputePipeline {
    const make = () => device.createComputePipeline(descriptorOf(launch));
    return pipelines.getOrInsertComputed(keyOf(launch), make);
  }

  /** Starts compiling all pipelines that a plan lacks: the driver may compile them in parallel. */
  function begin(plan: Plan): readonly Promise<void>[] {
    const missing = plan.filter((launch) => !pipelines.has(keyOf(launch)));
    return missing.map((launch) =>
      making.getOrInsertComputed(keyOf(launch), (key) => {
        const made = device.createComputePipelineAsync(descriptorOf(launch))
          .then((pipeline) => void pipelines.set(key, pipeline));
        made.catch(() => {}); // the error scope's message on the module is reported first
        return made;
      })
    );
  }

  /** Returns what `make` returned. @throws Error with the device's message where it is not valid. */
  async function checked<T>(make: () => T): Promise<T> {
    device.pushErrorScope("validation");
    let made: T;
    let error: GPUError | null;
    try {
      made = make();
    } finally {
      error = await device.popErrorScope(); // an open scope would take all later errors
    }
    if (error) throw cannotCompile(error);
    return made;
  }

  /** @param fresh groups that this plan has made so far, by their keys; a new group is added to it. */
  function boundOf(
    launch: Dispatch,
    made: GPUComputePipeline,
    fresh: Map<string, BoundGroup>,
  ): BoundGroup {
    const operands = launch.kernel.bindings.map((name) => launch.buffers[name] as Operand);
    const parts = operands.map(({ buffer, offset, size }) => {
      return [numbers.getOrInsertComputed(buffer, () => numbered++), offset, size];
    });
    const key = keyOf(launch) + JSON.stringify(parts);
    return bound.get(key) ??
      fresh.getOrInsertComputed(key, () => bindGroup(launch, operands, made));
  }

  function bindGroup(
    launch: Dispatch,
    operands: readonly Operand[],
    made: GPUComputePipeline,
  ): BoundGroup {
    const buffers = new Set(operands.map(({ buffer }) => buffer));
    const now = (buffer: GPUBuffer) => moved.has(buffer) ? moved.get(buffer) : buffer;
    const bind = () => {
      if (![...buffers].every(now)) return undefined;
      created.bindGroups++;
      return device.createBindGroup({
        label: launch.label,
        layout: made.getBindGroupLayout(0),
        entries: operands.map(({ buffer, ...part }, i) => {
          const resource = { ...part, buffer: now(buffer) as GPUBuffer };
          return { binding: launch.kernel.numbers[i] as number, resource };
        }),
      });
    };
    const kept: BoundGroup = { group: bind(), steps: [] };
    for (const buffer of buffers) {
      if (!movable.has(buffer)) continue;
      uses.getOrInsertComputed(buffer, () => []).push(() => kept.group = bind());
    }
    return kept;
  }

  function stepsOf(plan: Plan, fresh: Map<string, BoundGroup>): Step[] {
    return plan.map((launch) => step(launch, fresh));
  }

  function step(launch: Dispatch, fresh: Map<string, BoundGroup>): Step {
    const made = pipeline(launch);
    const { workgroups, cellsEach, groupsBefore, forCells, label, kernel: { name }, work } = launch;
    const bound = boundOf(launch, made, fresh);
    const step: Step = {
      pipeline: made,
      bound,
      uniforms: uniforms?.groupOf(launch, made),
      workgroups,
      cellsEach,
      groupsBefore,
      forCells,
      label,
      kernel: name,
      work,
    };
    return shared(step);
  }

  return {
    created,
    prepare(plan: Plan): Program {
      plan.forEach(admit);
      return { steps: stepsOf(plan, new Map()) };
    },
    async compile(plan: Plan): Promise<Program> {
      plan.forEach(admit);
      const begun = await checked(() => begin(plan));
      await gpu.settled(Promise.all(begun)).catch((error) => {
        throw cannotCompile(error);
      });
      const fresh = new Map<string, BoundGroup>();
      const steps = await checked(() => stepsOf(plan, fresh));
      for (const [key, group] of fresh) bound.set(key, group); // the device has found no fault in them
      return { steps };
    },
    replace(from, to) {
      if (!movable.has(from)) throw new Error(`the buffer "${from.label}" does not move`);
      moved.set(from, to);
      for (const bindAgain of uses.get(from) ?? []) bindAgain();
    },
  };
}

/** The step that was made before with the same contents, or this one. */
function shared(step: Step): Step {
  const { bound: { steps } } = step;
  const same = steps.find((other) => isSame(step, other));
  if (same === undefined) steps.push(step);
  return same ?? step;
}

/** Whether two steps with the same bind group, and therefore pipeline, do the same in a program and a profile. */
function isSame(a: Step, b: Step): boolean {
  return a.uniforms === b.uniforms && isDeepStrictEqual(plainOf(a), plainOf(b));
}

/** What a step has besides objects of the device. */
function plainOf({ workgroups, cellsEach, groupsBefore, forCells, label, kernel, work }: Step) {
  return { workgroups, cellsEach, groupsBefore, forCells, label, kernel, work };
}

function cannotCompile({ message }: Pick<Error, "message">): Error {
  return new Error(`Cannot compile a plan: ${message}`);
}

/** A kernel and its label. */
type Use = Pick<Dispatch, "kernel" | "label">;

function checkBindings({ name, bindings }: Kernel, limits: GPUSupportedLimits): void {
  const most = limits.maxStorageBuffersPerShaderStage;
  if (bindings.length <= most) return;
  throw new UsageError(
    `Cannot compile the kernel "${name}": it binds ${bindings.length} storage buffers, ` +
      `the adapter's maxStorageBuffersPerShaderStage is ${most}`,
  );
}

/**
 * Deno's WebGPU takes pipelines that need more workgroup memory than the adapter has. On an H200 their launches do not
 * end.
 */
function checkMemory(launch: Dispatch, most: number): void {
  const bytes = workgroupMemory(launch);
  if (bytes <= most) return;
  throw new UsageError(
    `Cannot compile the kernel "${launch.kernel.name}": it has ${bytes} bytes of workgroup memory, ` +
      `the adapter's maxComputeWorkgroupStorageSize is ${most}`,
  );
}

/** Error text for two uses of one name with different WGSL: the two labels, and the first difference. */
function twoSources(first: Use, second: Use): string {
  const [a, b] = [first.kernel.code.split("\n"), second.kernel.code.split("\n")];
  const parts = a.findIndex((line, i) => line !== b[i]);
  const line = parts < 0 ? a.length : parts; // the second goes on where the first ends
  const [there, here] = [a, b].map((lines) => lines[line]?.trim() ?? "(the end)");
  return `Cannot compile the kernel "${first.kernel.name}": two sources have this name, ` +
    `that of "${first.label}" and that of "${second.label}"; ` +
    `line ${line + 1} is "${there}" in the one and "${here}" in the other`;
}

/** Whether a dispatch runs where no slot has more than `cells` cells. */
export function runsWithin(
  { forCells }: { readonly forCells?: CellRange | undefined },
  cells: number,
): boolean {
  return forCells === undefined || (cells >= forCells.from && cells <= forCells.upTo);
}

/**
 * Returns the program for slots of at most `cells` cells: without the steps for longer ones, and with as many
 * workgroups as these need. Creates nothing on the device.
 */
export function within({ steps }: Program, cells: number): Program {
  return {
    steps: steps.filter((step) => runsWithin(step, cells)).map((step) => {
      const { workgroups: [x, y, z], cellsEach, groupsBefore = 0 } = step;
      if (cellsEach === undefined) return step;
      const most = groupsBefore + Math.max(1, Math.ceil(cells / cellsEach));
      return most < z ? shared({ ...step, workgroups: [x, y, most] }) : step;
    }),
  };
}

/** Replays a program into an open compute pass. */
export function encode(pass: GPUComputePassEncoder, { steps }: Program): void {
  for (const { pipeline, bound: { group }, uniforms, workgroups, label } of steps) {
    if (group === undefined) throw new Error(`Cannot run "${label}": a buffer of it is gone`);
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    if (uniforms) pass.setBindGroup(1, uniforms);
    pass.dispatchWorkgroups(workgroups[0], workgroups[1], workgroups[2]);
  }
}

/** Runs a program once, in a submission of its own. */
export function submit({ device }: Gpu, program: Program): void {
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  encode(pass, program);
  pass.end();
  device.queue.submit([encoder.finish()]);
}
