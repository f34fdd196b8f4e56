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
  /** What the WGSL binds each of them to; numbers may be left out. */
  readonly numbers: readonly number[];
  readonly constants: readonly Constant[];
}

/** What a launch has to do at least, for the profile: a floor for its time. */
export interface Cost {
  /** Read and written, everything once however often the kernel reads it. */
  readonly bytes: number;
  readonly flops: number;
  /** What grows with the context, which the recorder does not know. */
  readonly context?: {
    /** Bytes for each cell that is read, over all sequences. */
    readonly bytesPerCell: number;
    /** Operations of all rows together for each cell that a row sees. */
    readonly flopsPerCell: number;
    /** Most cells that a row sees; absent = all. */
    readonly window?: number | undefined;
  };
}

/** One recorded launch of a kernel. A forward pass is a list of these. */
export interface Dispatch {
  readonly kernel: Kernel;
  /** Buffers by the names of their bindings. */
  readonly buffers: Readonly<Record<string, Operand>>;
  /** WGSL `override` values. */
  readonly constants: Readonly<Record<string, number>>;
  readonly workgroups: readonly [x: number, y: number, z: number];
  /** Where z grows with the context: cells of a slot that each has, `workgroups` being for most. */
  readonly cellsEach?: number;
  /** Workgroups along z that come before those, for any number of cells; default 0. */
  readonly groupsBefore?: number;
  /** Numbers of cells that it is for; absent: any. */
  readonly forCells?: CellRange;
  /** What it is for in the model ("layers.3.down"); the profile's key. */
  readonly label: string;
  /** Absent where it is too little to matter. */
  readonly work?: Cost;
}

/** Most cells that a slot has pages for. */
export interface CellRange {
  readonly from: number;
  readonly upTo: number;
}

export type Plan = readonly Dispatch[];

/**
 * A kernel of a WGSL text. Bindings and constants are the text's; where they are declared too, the compiler knows their
 * names at each `dispatch`, and they are compared with the text's here, so that a renamed one is an error with both
 * names.
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
 * Records a launch. The compiler asks for exactly the bindings and constants that the kernel declares.
 *
 * @throws Error with the names where one of the WGSL's is missing.
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
