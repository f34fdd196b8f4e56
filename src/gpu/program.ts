import type { Gpu } from "./device.ts";
import type { Dispatch, Operand, Plan, Work } from "./kernel.ts";

/** A dispatch that is ready to be encoded. */
export interface Step {
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly workgroups: readonly [number, number, number];
  readonly cellsEach: number | undefined;
  readonly label: string;
  /** The kernel's name. */
  readonly kernel: string;
  readonly work: Work | undefined;
}

/** A plan with its pipelines and bind groups made: replaying it creates nothing. */
export interface Program {
  readonly steps: readonly Step[];
}

/** Counts what was created, so that a test can show that a round creates nothing. */
export interface Created {
  modules: number;
  pipelines: number;
  bindGroups: number;
}

/** Turns plans into programs; equal kernels with equal constants share one pipeline. */
export interface Compiler {
  readonly created: Readonly<Created>;
  /** As `compile`, without waiting: what does not fit is thrown by the next `gpu.check()`. */
  prepare(plan: Plan): Program;
  /** @throws Error with the compiler's words when WGSL, bindings or limits do not fit. */
  compile(plan: Plan): Promise<Program>;
}

export function compiler(gpu: Gpu): Compiler {
  const { device } = gpu;
  const created: Created = { modules: 0, pipelines: 0, bindGroups: 0 };
  const modules = new Map<string, GPUShaderModule>();
  const pipelines = new Map<string, GPUComputePipeline>();

  function pipeline({ kernel, constants }: Dispatch): GPUComputePipeline {
    const key = JSON.stringify([kernel.name, constants]);
    return pipelines.getOrInsertComputed(key, () => {
      const module = modules.getOrInsertComputed(kernel.name, () => {
        created.modules++;
        return device.createShaderModule({ label: kernel.name, code: kernel.code });
      });
      created.pipelines++;
      return device.createComputePipeline({
        label: kernel.name,
        layout: "auto",
        compute: { module, entryPoint: "main", constants },
      });
    });
  }

  function step(launch: Dispatch): Step {
    const made = pipeline(launch);
    created.bindGroups++;
    const group = device.createBindGroup({
      label: launch.label,
      layout: made.getBindGroupLayout(0),
      entries: launch.kernel.bindings.map((name, i) => {
        const operand = launch.buffers[name] as Operand;
        return { binding: launch.kernel.numbers[i] as number, resource: { ...operand } };
      }),
    });
    const { workgroups, cellsEach, label, kernel: { name }, work } = launch;
    return { pipeline: made, group, workgroups, cellsEach, label, kernel: name, work };
  }

  return {
    created,
    prepare: (plan) => ({ steps: plan.map(step) }),
    async compile(plan: Plan): Promise<Program> {
      device.pushErrorScope("validation");
      const steps = plan.map(step);
      const error = await device.popErrorScope();
      if (error) throw new Error(`Cannot compile a plan: ${error.message}`);
      return { steps };
    },
  };
}

/** The same program where no slot has more than `cells` cells. Creates nothing on the device. */
export function within({ steps }: Program, cells: number): Program {
  return {
    steps: steps.map((step) => {
      const { workgroups: [x, y, z], cellsEach } = step;
      if (cellsEach === undefined) return step;
      const most = Math.max(1, Math.ceil(cells / cellsEach));
      return { ...step, workgroups: [x, y, Math.min(z, most)] };
    }),
  };
}

/** Replays a program into an open compute pass. */
export function encode(pass: GPUComputePassEncoder, { steps }: Program): void {
  for (const { pipeline, group, workgroups } of steps) {
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
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
