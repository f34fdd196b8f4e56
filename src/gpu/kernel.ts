/** A part of a GPU buffer, or all of it. `offset` is a multiple of 256. */
export interface Operand {
  readonly buffer: GPUBuffer;
  /** Bytes. */
  readonly offset?: number;
  /** Bytes; absent = to the end of the buffer. */
  readonly size?: number;
  /** What is stored there, where the buffer's label does not say it. */
  readonly label?: string;
}

/** One WGSL module with entry point `main`. */
export interface Kernel<Binding extends string = string, Constant extends string = string> {
  readonly name: string;
  readonly code: string;
  /** Bindings in the order of their numbers; all are storage buffers. */
  readonly bindings: readonly Binding[];
  /** The @binding number of each; numbers may have gaps. */
  readonly numbers: readonly number[];
  readonly constants: readonly Constant[];
}

/** The least memory traffic and arithmetic of a launch: the profile derives a lower bound of its time. */
export interface Cost {
  /** Bytes read and written; each counts once however often the kernel reads it. */
  readonly bytes: number;
  readonly flops: number;
  /** The part that grows with the context, whose length is not known when the launch is recorded. */
  readonly context?: {
    /** Bytes for each cell that is read, over all sequences. */
    readonly bytesPerCell: number;
    /** Operations of all rows together for each cell that a row sees. */
    readonly flopsPerCell: number;
    /** Most cells that a row sees; absent = all. */
    readonly window?: number | undefined;
  };
}

/** Most workgroups of a launch along one dimension: what every adapter takes. */
export const MAX_DISPATCHED = 65535;

/** One recorded launch of a kernel. A forward pass is a list of these. */
export interface Dispatch {
  readonly kernel: Kernel;
  /** Buffers by the names of their bindings. */
  readonly buffers: Readonly<Record<string, Operand>>;
  /** WGSL `override` values. */
  readonly constants: Readonly<Record<string, number>>;
  readonly workgroups: readonly [x: number, y: number, z: number];
  /** Where z grows with the context: cells of a slot per workgroup. `workgroups` then has z for the longest slot. */
  readonly cellsEach?: number;
  /** Workgroups along z that come before those, launched for any number of cells; default 0. */
  readonly groupsBefore?: number;
  /** The launch runs only where the longest slot has this many cells; absent: always. */
  readonly forCells?: CellRange;
  /** What it is for in the model ("layers.3.down"); the profile's key. */
  readonly label: string;
  /** Absent where the work is too little to matter. */
  readonly work?: Cost;
}

/** A range of the largest number of cells that a slot has pages for, both ends included. */
export interface CellRange {
  readonly from: number;
  readonly upTo: number;
}

export type Plan = readonly Dispatch[];

/** The dispatches of `plan` that run for some number of cells in a range, restricted to it. */
export function forCellsIn(plan: Plan, { from, upTo }: CellRange): Dispatch[] {
  return plan.map((each) => {
    const { forCells = { from: 0, upTo: Infinity } } = each;
    return {
      ...each,
      forCells: { from: Math.max(from, forCells.from), upTo: Math.min(upTo, forCells.upTo) },
    };
  }).filter(({ forCells }) => forCells.from <= forCells.upTo);
}

/**
 * Makes a kernel of a WGSL text and reads its bindings and constants from the text. Where the caller declares them too,
 * TypeScript checks their names at each `dispatch`, and this function compares them with the text's: a renamed one is
 * an error with both names.
 *
 * @throws Error when the WGSL has other bindings or override constants than are declared.
 */
export function kernel<
  const Binding extends string = string,
  const Constant extends string = string,
>(
  name: string,
  code: string,
  declared: {
    readonly bindings?: readonly Binding[];
    readonly constants?: readonly Constant[];
  } = {},
): Kernel<Binding, Constant> {
  const bound = [...code.matchAll(/@binding\((\d+)\)\s*var<storage[^>]*>\s*(\w+)/g)]
    .map(([, number, name]) => ({ number: Number(number), name: name as Binding }))
    .toSorted((a, b) => a.number - b.number);
  const bindings = bound.map(({ name }) => name);
  const constants = [...code.matchAll(/^override (\w+)/gm)].map(([, name]) => name as Constant)
    .toSorted();
  if (declared.bindings && `${bindings}` !== `${declared.bindings}`) {
    throw new Error(`kernel ${name}: WGSL binds ${bindings}, declared ${declared.bindings}`);
  }
  if (declared.constants && `${constants}` !== `${declared.constants.toSorted()}`) {
    throw new Error(`kernel ${name}: WGSL overrides ${constants}, declared ${declared.constants}`);
  }
  return { name, code, bindings, numbers: bound.map(({ number }) => number), constants };
}

/**
 * Records a launch. TypeScript asks for exactly the bindings and constants that the kernel declares.
 *
 * @throws Error with the names where one of the WGSL's is missing, or where there are too many workgroups.
 */
export function dispatch<Binding extends string, Constant extends string>(
  kernel: Kernel<Binding, Constant>,
  launch: {
    readonly buffers: Readonly<Record<NoInfer<Binding>, Operand>>;
    readonly constants: Readonly<Record<NoInfer<Constant>, number>>;
    readonly workgroups: readonly [x: number, y?: number, z?: number];
    readonly cellsEach?: number;
    readonly groupsBefore?: number;
    readonly forCells?: CellRange | undefined;
    readonly label?: string;
    readonly work?: Cost;
  },
): Dispatch {
  const [x, y = 1, z = 1] = launch.workgroups;
  const { buffers, constants, label = kernel.name, cellsEach, groupsBefore, forCells, work } =
    launch;
  const missing = [
    ...lacks("binds", kernel.bindings, buffers),
    ...lacks("overrides", kernel.constants, constants),
  ];
  if (missing.length > 0) {
    throw new Error(`Cannot record "${label}": ${kernel.name} ${missing.join("; ")}`);
  }
  if (Math.max(x, y, z) > MAX_DISPATCHED) {
    throw new Error(
      `Cannot record "${label}": ${x} x ${y} x ${z} workgroups of ${kernel.name}, ` +
        `at most ${MAX_DISPATCHED} go along one dimension`,
    );
  }
  return {
    kernel,
    buffers,
    constants,
    label,
    workgroups: [x, y, z],
    ...cellsEach === undefined ? {} : { cellsEach },
    ...groupsBefore === undefined ? {} : { groupsBefore },
    ...forCells === undefined ? {} : { forCells },
    ...work === undefined ? {} : { work },
  };
}

function lacks(does: string, names: readonly string[], given: object): string[] {
  const all = names.every((name) => Object.hasOwn(given, name));
  return all ? [] : [`${does} ${names}, given ${Object.keys(given)}`];
}

/** How long the context of a forward is. */
export interface Context {
  /** Cells that are read, over all sequences. */
  readonly cells: number;
  /** Cells that a row sees, on average. */
  readonly seen: number;
}

/** A launch's work with what its context adds. */
export function workAt(work: Cost, { cells, seen }: Context): { bytes: number; flops: number } {
  const { bytesPerCell = 0, flopsPerCell = 0, window = Infinity } = work.context ?? {};
  const share = Math.min(1, window / seen);
  return {
    bytes: work.bytes + bytesPerCell * cells * share,
    flops: work.flops + flopsPerCell * seen * share,
  };
}

/** Bytes that an operand binds. */
export function bytesOf({ buffer, offset = 0, size = buffer.size - offset }: Operand): number {
  return size;
}

/** What an operand holds, for people. */
export function labelOf({ buffer, label = buffer.label }: Operand): string {
  return label;
}
