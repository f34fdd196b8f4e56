import type { Sliders, View } from "./view.ts";

/** The part of the browser's `document` that the sliders use. */
export interface ControlledPage {
  getElementById(id: string): {
    value: string;
    textContent: string;
    innerHTML: string;
    addEventListener(kind: string, listener: () => void): void;
  };
}

/**
 * Redraws the view when a slider moves. The function uses nothing but its arguments, because its source is written into
 * the page.
 */
export function control(page: ControlledPage, view: View): void {
  const value = (name: string) => Number(page.getElementById(name).value);
  function draw(): void {
    const sliders: Sliders = {
      alpha: value("alpha"),
      steps: value("steps"),
      draft: value("draft"),
      verify: value("verify"),
    };
    for (const [name, value] of Object.entries(sliders)) {
      page.getElementById(`${name}-value`).textContent = name === "steps"
        ? String(value)
        : value.toFixed(3);
    }
    for (const [id, html] of Object.entries(view(sliders))) {
      page.getElementById(id).innerHTML = html;
    }
  }
  const form = page.getElementById("sliders");
  form.addEventListener("input", draw);
  // The sliders have their first values again when the event is over.
  form.addEventListener("reset", () => setTimeout(draw));
  // A browser may restore sliders that were moved before a reload.
  draw();
}
