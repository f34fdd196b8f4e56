/** What the slots of a WGSL text stand for: the path of a text by the name of the slot. */
export type Slots = Readonly<Record<string, string>>;

/**
 * The WGSL text of `path` with the fragments that it uses. A line `//use folder/name` stands for the text
 * of that path. A line `//use name`, without a slash, names a slot, which stands for the text of the path
 * `slots[name]`: a variant that the caller chooses. Every text goes in once, at the first line that
 * uses it, and is indented like that line.
 *
 * @param texts by path: relative to one folder, with slashes, without ".wgsl".
 * @throws Error on a path without a text, a slot without a path, or texts that use each other in a
 * circle.
 */
export function link(
  path: string,
  texts: Readonly<Record<string, string>>,
  slots: Slots = {},
): string {
  const included = new Set<string>();

  /** `users` are the texts being put in, outermost first. */
  function textOf(path: string, users: readonly string[]): string {
    const text = Object.hasOwn(texts, path) ? texts[path] : undefined;
    if (text === undefined) throw new Error(`${at(users)}//use ${path}: no such file`);
    included.add(path);
    return text.replaceAll(/^([ \t]*)\/\/use (\S+)[ \t]*$/gm, (_, indent, name) => {
      const inner = [...users, path];
      const used = name.includes("/") ? name : slotPath(name, inner);
      if (inner.includes(used)) {
        throw new Error(`${at(inner)}//use ${used}: a circle, ${[...inner, used].join(" -> ")}`);
      }
      return included.has(used) ? "" : indented(textOf(used, inner), indent);
    });
  }

  function slotPath(name: string, users: readonly string[]): string {
    const used = Object.hasOwn(slots, name) ? slots[name] : undefined;
    if (used === undefined) throw new Error(`${at(users)}//use ${name}: no such slot`);
    return used;
  }

  return textOf(path, []);
}

function at(users: readonly string[]): string {
  const user = users.at(-1);
  return user === undefined ? "" : `${user}.wgsl: `;
}

function indented(text: string, indent: string): string {
  return text.trimEnd().replaceAll(/^(?=.)/gm, indent);
}
