// Spans of time as people write them, such as 90s or 1h30m.
const factors: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** parseSpan reads a span in milliseconds; undefined if the text is none or is not a whole number of milliseconds. */
export function parseSpan(text: string): bigint | undefined {
  if (!/^(?:[0-9]+(?:\.[0-9]+)?(?:h|ms|m|s))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, number, unit] of text.matchAll(/([0-9.]+)(h|ms|m|s)/g)) total += Number(number) * factors[unit!]!;
  return Number.isSafeInteger(total) ? BigInt(total) : undefined;
}
