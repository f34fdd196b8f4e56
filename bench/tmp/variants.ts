import type { Plan } from "../../src/gpu/kernel.ts";
interface Of {
  format: string;
  what: string[];
  X: Record<string, unknown>;
  build: () => Plan[];
  edit: (end: string, change: (code: string) => string) => (name: string, from?: Plan[]) => Plan[];
  short: (label: string) => string;
  plans: Plan[];
}
/** Moves the loads of x before those of weights. */
export function xFirst(code: string): string {
  const lines = code.split("\n");
  const first = lines.findIndex((l) => /^\s*var block_a/.test(l));
  let last = first;
  lines.forEach((l, i) => {
    if (/^\s*var block_[ab]/.test(l)) last = i;
  });
  let from = last + 1;
  while (/^\s*(\/\/|$)/.test(lines[from]!)) from++;
  let to = from;
  while (/^\s*(let|var|\/\/|tile|\()|^\s*$|^\s*\(/.test(lines[to]!)) to++;
  const moved = lines.splice(from, to - from);
  lines.splice(first, 0, ...moved);
  return lines.join("\n");
}
/** Queries through workgroup memory, asked for first; one chunk. */
export function queriesFirst(code: string): string {
  const n = 5;
  const many = [...Array(n).keys()];
  return code
    .replace(
      "var slot = 0u;",
      `${
        many.map((s) =>
          `let own_q${s} = q[query * WIDTH4 + min(thread + ${s}u * THREADS, QUERIES * WIDTH4 - 1u)];`
        ).join("\n  ")
      }\n  var slot = 0u;`,
    )
    .replaceAll(/let x = q\[query(\d) \+ (e\d)\];/g, "let x = pool[$1u * WIDTH4 + $2];")
    .replace("  pool[lane * POOL", "  workgroupBarrier();\n  pool[lane * POOL")
    .replace(
      "workgroupBarrier(); // what is read of the part before",
      `workgroupBarrier();\n    ${
        many.map((s) =>
          `if (thread + ${s}u * THREADS < QUERIES * WIDTH4) { pool[thread + ${s}u * THREADS] = own_q${s}; }`
        ).join("\n    ")
      }`,
    )
    .replace("array<vec4<f32>, LANES * POOL>", "array<vec4<f32>, QUERIES * WIDTH4>");
}
export function* variantsOf(
  { format, what, X, build, edit }: Of,
): Generator<[string, () => Plan[]]> {
  const withX = (key: string, value: unknown) => () => {
    X[key] = value;
    const made = build();
    delete X[key];
    return made;
  };
  if (what.includes("combo")) {
    const once = (code: string) => code;
    const all = (values: Record<string, unknown>, choice = true) => () => {
      Object.assign(X, values);
      const made = build();
      for (const key of Object.keys(values)) delete X[key];
      return choice ? edit("experts.gateUp", once)("once", made) : made;
    };
    for (
      const [queries, threads, lanes, cells, groups] of [
        [8, 256, 8, 1, 2],
        [4, 128, 16, 2, 1],
        [8, 256, 16, 2, 2],
        [16, 256, 8, 2, 2],
        [4, 64, 8, 2, 1],
        [4, 128, 8, 1, 1],
      ]
    ) {
      yield [
        `tile ${queries} ${threads} ${lanes} ${cells} ${groups}`,
        all({ X_TILE: { queries, threads, lanes, cells, groups } }, false),
      ];
    }
  }
  if (what.includes("sums")) {
    const q8 = format !== "bf16";
    for (
      const [sets, outs, steps] of q8
        ? [[2, 4, 3], [4, 4, 3], [8, 4, 3], [4, 4, 4], [4, 4, 2], [2, 8, 2], [4, 8, 2], [4, 4, 6], [
          2,
          4,
          11,
        ]]
        : [[1, 4, 3], [2, 4, 3], [2, 4, 4], [2, 4, 2], [1, 8, 2], [2, 8, 2], [2, 4, 6], [1, 4, 6]]
    ) {
      yield [`sums held ${sets} sets ${outs}x${steps}`, withX("X_SUMS", { sets, outs, steps })];
    }
    for (const [outs, steps] of [[4, 4], [4, 6], [4, 11], [8, 3]]) {
      yield [`sums ${outs}x${steps}`, withX("X_SUMS", { outs, steps })];
    }
  }
  if (what.includes("attention")) {
    for (const threads of [256, 128]) yield [`value ${threads} threads`, withX("X_VALUE", threads)];
    yield ["attention queries first", () => edit("attention", queriesFirst)("qf")];
  }
  if (what.includes("gate")) {
    const once = (code: string) =>
      code.replace(
        /let expert = expert_of/,
        "if (tile.x >= JOBS && tile.y > 0u) { return; }\n  let expert = expert_of",
      );
    const gate = edit("experts.gateUp", once);
    yield ["gate choice once", () => gate("once")];
    for (
      const [stage, groups] of [[32, 8], [64, 8], [128, 8], [256, 8], [64, 4], [128, 4], [64, 16], [
        128,
        16,
      ]]
    ) {
      yield [
        `gate stage ${stage} groups ${groups} once`,
        () => gate("once", withX("X_GATE", { stage, groups })()),
      ];
    }
  }
  if (what.includes("qkv")) {
    for (const end of ["qKvA", ".o"]) {
      yield [`${end} x first`, () => edit(end === ".o" ? "o" : end, xFirst)("xf")];
    }
    for (
      const [ahead, groups] of format === "bf16"
        ? [[16, 8], [16, 4], [8, 4], [4, 8], [4, 4]]
        : [[8, 8], [8, 4], [4, 4], [2, 8]]
    ) {
      yield [`qKvA ahead ${ahead} groups ${groups}`, withX("X_QKV", { ahead, groups })];
      yield [
        `qKvA ahead ${ahead} groups ${groups} x first`,
        () => edit("qKvA", xFirst)("xf", withX("X_QKV", { ahead, groups })()),
      ];
    }
  }
}
