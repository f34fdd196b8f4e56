import { labelOf, type Plan } from "../../src/gpu/kernel.ts";

/** One line a dispatch, to read what a refactor changed. */
export function describe(plan: Plan): string {
  return plan.map(({ kernel, buffers, constants, workgroups, label }) => {
    const operands = kernel.bindings.map((name) => {
      const operand = buffers[name];
      return `${name}=${operand && labelOf(operand)}${operand?.offset ? `+${operand.offset}` : ""}`;
    });
    const numbers = Object.entries(constants).map(([name, value]) => `${name}=${value}`);
    return [label, kernel.name, `[${workgroups}]`, ...operands, ...numbers].join(" ");
  }).join("\n");
}
