import type { PlotOptions } from "@observablehq/plot";
import { plot } from "@observablehq/plot";
import { parseHTML } from "linkedom";

/** What the page needs of a DOM node: Deno has no DOM, linkedom's stands in for it. */
export interface PageNode {
  readonly outerHTML: string;
  innerHTML: string;
  setAttribute(name: string, value: string): void;
  append(...children: readonly (PageNode | string)[]): void;
}

interface PageDocument {
  createElement(tag: string): PageNode;
}

/** Makes elements and charts of one page. Text is escaped where the page is written out. */
export interface PageMaker {
  element(
    tag: string,
    attributes: Readonly<Record<string, string>>,
    ...children: readonly (PageNode | string)[]
  ): PageNode;
  /**
   * A chart as SVG: no script, colours and font are those of the page. Screen readers get its
   * `name`; without one it is decoration.
   */
  chart(options: PlotOptions, name?: string): PageNode;
}

export function pageMaker(): PageMaker {
  const { document } = parseHTML("<!doctype html><html></html>") as unknown as {
    document: PageDocument;
  };
  return {
    element(tag, attributes, ...children) {
      const made = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      made.append(...children);
      return made;
    },
    chart(options, name) {
      const svg = plot(
        { marginBottom: 38, ...options, document } as PlotOptions,
      ) as unknown as PageNode;
      if (name === undefined) {
        svg.setAttribute("aria-hidden", "true");
      } else {
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", name);
      }
      return svg;
    },
  };
}

/** The whole file around `main`. `css` and `script` are ours, the title is text. */
export function documentText(
  { title, css, main, script }: {
    readonly title: string;
    readonly css: string;
    readonly main: PageNode;
    readonly script?: string;
  },
  { element }: PageMaker,
): string {
  // The DOM escapes no title and no style sheet: the one is escaped as other text.
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${element("b", {}, title).innerHTML}</title>
<style>${css}</style>
</head>
<body>
${main.outerHTML}
${script === undefined ? "" : `<script>\n${script}\n</script>\n`}</body>
</html>
`;
}
