/** Small models with random weights in tests/golden/, of which transformers computed logits and text. */
const FOLDER = new URL("./golden/", import.meta.url);

/** Names of those whose folder has this file, in order. */
export function goldensWith(file: string): string[] {
  return filesOfGoldens().filter(({ files }) => files.includes(file)).map(({ name }) => name);
}

/** Files of expected values of each: `expected` for expected.safetensors. */
export function expectationsOfGoldens(): { readonly name: string; readonly files: string[] }[] {
  return filesOfGoldens().flatMap(({ name, files }) => {
    const found = files.flatMap((file) =>
      /^(expected(?:_long)?)\.safetensors$/.exec(file)?.[1] ?? []
    );
    return found.length === 0 ? [] : [{ name, files: found }];
  });
}

function filesOfGoldens(): { readonly name: string; readonly files: readonly string[] }[] {
  return [...Deno.readDirSync(FOLDER)].filter(({ isDirectory }) => isDirectory)
    .map(({ name }) => ({ name, files: filesOf(name) }))
    .toSorted((a, b) => a.name < b.name ? -1 : 1);
}

function filesOf(name: string): string[] {
  return [...Deno.readDirSync(new URL(`${name}/`, FOLDER))].map((file) => file.name).toSorted();
}
