import type { PlotOptions } from "@observablehq/plot";
import { plot } from "@observablehq/plot";
import { DOMImplementation, DOMParser, type Node, XMLSerializer } from "@xmldom/xmldom";

/** A node of a page. Deno has no DOM, so it is one of xmldom. */
export type PageNode = Node;

/** Makes the elements and charts of one page. Text is escaped when the page is serialized. */
export interface PageMaker {
  element(
    tag: string,
    attributes: Readonly<Record<string, string>>,
    ...children: readonly (PageNode | string)[]
  ): PageNode;
  /** Parses well-formed HTML into nodes. */
  markup(html: string): PageNode;
  /**
   * A chart as SVG without a script, in the colours and font of the page. `name` is its label for screen readers, which
   * skip a chart without one.
   */
  chart(options: PlotOptions, name?: string): PageNode;
}

/** A maker of the nodes of a new page. */
export function pageMaker(): PageMaker {
  const document = new DOMImplementation().createHTMLDocument("");
  return {
    element(tag, attributes, ...children) {
      // Without a namespace, which the serializer would declare: an HTML file has it anyway.
      const made = document.createElementNS(null, tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      for (const child of children) {
        made.appendChild(typeof child === "string" ? document.createTextNode(child) : child);
      }
      return made;
    },
    markup(html) {
      const parsed = new DOMParser().parseFromString(`<div>${html}</div>`, "text/xml");
      const fragment = document.createDocumentFragment();
      for (const node of parsed.documentElement?.childNodes ?? []) {
        fragment.appendChild(document.importNode(node, true));
      }
      return fragment;
    },
    chart(options, name) {
      // Of the DOM it takes what builds a tree: elements, their attributes and texts.
      const svg = plot({ marginBottom: 38, ...options, document: document as never });
      if (name === undefined) {
        svg.setAttribute("aria-hidden", "true");
      } else {
        svg.setAttribute("role", "img");
        svg.setAttribute("aria-label", name);
      }
      return svg as unknown as PageNode;
    },
  };
}

/** The HTML file with `main` in its body. The title is escaped; `css` and `script` are not. */
export function documentText(
  { title, css, main, script }: {
    readonly title: string;
    readonly css: string;
    readonly main: PageNode;
    readonly script?: string;
  },
  { element }: PageMaker,
): string {
  const text = (node: PageNode) => new XMLSerializer().serializeToString(node);
  // A style sheet and a script are not escaped.
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${text(element("title", {}, title))}
<style>${css}</style>
</head>
<body>
${text(main)}
${script === undefined ? "" : `<script>\n${script}\n</script>\n`}</body>
</html>
`;
}
