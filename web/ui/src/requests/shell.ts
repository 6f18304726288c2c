// Words of a command line, quoted where a shell would interpret them.
const plain = /^[A-Za-z0-9_.,:/@%+=][A-Za-z0-9_.,:/@%+=-]*$/;

/** quoteWord quotes a text as one word. */
export function quoteWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** flagWord is a text as the value behind the = of a flag. */
export function flagWord(text: string): string {
  return plain.test(text) ? text : quoteWord(text);
}

/** argumentWord is a text as an argument; one that looks like a flag follows "--". */
export function argumentWord(text: string): string {
  if (plain.test(text)) return text;
  return (text.startsWith("-") ? "-- " : "") + quoteWord(text);
}
