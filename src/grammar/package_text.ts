/** The text of `@mlc-ai/web-xgrammar`, read when it is first wanted; tools/bundle.ts swaps this module. */
export async function packageText(): Promise<string> {
  const { default: text } = await import("@mlc-ai/web-xgrammar", { with: { type: "text" } });
  return String(text);
}
