import constrained from "../../../docs/constrained.md" with { type: "text" };
import drafters from "../../../docs/drafters.md" with { type: "text" };
import environment from "../../../docs/environment.md" with { type: "text" };
import exactness from "../../../docs/exactness.md" with { type: "text" };
import install from "../../../docs/install.md" with { type: "text" };
import policies from "../../../docs/policies.md" with { type: "text" };
import sampling from "../../../docs/sampling.md" with { type: "text" };
import server from "../../../docs/server.md" with { type: "text" };
import trees from "../../../docs/trees.md" with { type: "text" };
import troubleshooting from "../../../docs/troubleshooting.md" with { type: "text" };
import { plainText } from "./plain.ts";
import { sectionOf } from "./section.ts";
import { type Topic, TOPICS } from "./topics.ts";

/** Where a topic's text is: a page of docs/, its beginning and more of its sections. */
interface Source {
  readonly path: string;
  readonly page: string;
  /** Headings; `undefined` is what is before the first one. */
  readonly sections: readonly (string | undefined)[];
}

const SOURCES: Readonly<Record<Topic, Source>> = {
  policies: {
    path: "docs/policies.md",
    page: policies,
    sections: [undefined, "Each policy"],
  },
  trees: { path: "docs/trees.md", page: trees, sections: [undefined] },
  drafters: { path: "docs/drafters.md", page: drafters, sections: [undefined] },
  exactness: { path: "docs/exactness.md", page: exactness, sections: [undefined] },
  sampling: { path: "docs/sampling.md", page: sampling, sections: [undefined, "Order"] },
  constrained: {
    path: "docs/constrained.md",
    page: constrained,
    sections: [undefined, "How it ends"],
  },
  server: {
    path: "docs/server.md",
    page: server,
    sections: [undefined, "Routes", "Load", "Access and limits"],
  },
  gpu: { path: "docs/install.md", page: install, sections: ["The GPU"] },
  environment: {
    path: "docs/environment.md",
    page: environment,
    sections: [undefined, "The config file"],
  },
  "exit-codes": { path: "docs/troubleshooting.md", page: troubleshooting, sections: [undefined] },
};

/**
 * The text of `eyrie help TOPIC`, taken from a page of docs/. Its last line says how to read the rest. The
 * program contains the whole page, because an installation from a single file has no docs folder.
 *
 * @param options.all the whole page instead of the sections that say most.
 */
export function helpTopic(topic: Topic, { all }: { readonly all: boolean }): string {
  const { path, page, sections } = SOURCES[topic];
  const parts = all ? [plainText(page.replace(/^# .*\n/, ""))] : sections.flatMap((heading, at) => [
    ...heading === undefined || at === 0 ? [] : [`${heading}:`],
    plainText(sectionOf(page, heading)),
  ]);
  const end = all ? `This is ${path}` : `The whole page (${path}): eyrie help ${topic} all`;
  return [`eyrie help ${topic} - ${TOPICS[topic]}`, ...parts, end].join("\n\n") + "\n";
}
