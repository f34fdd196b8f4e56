/** Methods that look at a whole text, which V8 first copies into one piece if it was put together by `+`. */
const LOOKS = ["trim", "trimStart", "trimEnd", "indexOf", "startsWith", "endsWith"] as const;

/**
 * How many characters the texts have together that a call trims, searches or matches. Of code that looks again at all
 * that it holds for each character that comes, this is quadratic in the characters.
 */
export function scanned(run: () => void): number {
  let count = 0;
  const texts = String.prototype as unknown as Record<string, (...given: unknown[]) => unknown>;
  const known = LOOKS.map((name) => [name, texts[name]] as const);
  const { test } = RegExp.prototype;
  for (const [name, look] of known) {
    texts[name] = function (this: string, ...given) {
      count += this.length;
      return look?.apply(this, given);
    };
  }
  RegExp.prototype.test = function (text) {
    count += text.length;
    return test.call(this, text);
  };
  try {
    run();
  } finally {
    for (const [name, look] of known) if (look !== undefined) texts[name] = look;
    RegExp.prototype.test = test;
  }
  return count;
}
