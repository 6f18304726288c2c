// Amounts as people write them, read as the base units of the API: 16Gi of memory, 500m of a core.

/** The largest amount that servers take, in base units. */
export const maxAmount = 2n ** 62n - 1n;

const suffixes: readonly (readonly [string, bigint])[] = [
  ..."kMGTPE".split("").map((name, i) => [name, 1000n ** BigInt(i + 1)] as const),
  ..."KMGTPE".split("").map((name, i) => [`${name}i`, 1024n ** BigInt(i + 1)] as const),
];
const binaryBytes = suffixes.filter(([name]) => name.endsWith("i")).map(([name, factor]) => [`${name}B`, factor] as const);

const longest = 64;
const pattern = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]{1,2}))?([A-Za-z]*)$/;

/**
 * Reads an amount of things that are counted: inCount("2k") is 2000n. An amount is a decimal number with an optional
 * suffix: k M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (powers of 1024). Throws a RangeError for anything else, for
 * what is no whole number of base units, and for more than maxAmount.
 */
export function inCount(text: string): bigint {
  return parse(text, "things", 1n, suffixes);
}

/** Reads an amount of the unit milli in thousandths: inMilli("2.5") and inMilli("2500m") are 2500n. */
export function inMilli(text: string): bigint {
  return parse(text, "thousandths", 1000n, [["m", 0n], ...suffixes]);
}

/**
 * Reads an amount of bytes: inBytes("16Gi") is 17179869184n. GiB means the same as Gi; GB has two meanings, and is
 * refused.
 */
export function inBytes(text: string): bigint {
  return parse(text, "bytes", 1n, [...suffixes, ...binaryBytes]);
}

/** Writes bytes with the suffix that leaves the fewest digits, exactly: "16Gi". */
export function bytesText(amount: bigint): string {
  let best = String(amount);
  for (const [name, factor] of amount === 0n ? [] : suffixes) {
    const text = `${amount / factor}${name}`;
    if (amount % factor === 0n && text.length < best.length) best = text;
  }
  return best;
}

/** Writes thousandths as whole things, or with m: "2", "2500m". */
export function milliText(amount: bigint): string {
  return amount % 1000n === 0n ? String(amount / 1000n) : `${amount}m`;
}

function parse(text: string, base: string, one: bigint, known: readonly (readonly [string, bigint])[]): bigint {
  const parts = text.length > longest ? null : pattern.exec(text);
  if (!parts) {
    throw new RangeError(
      `${JSON.stringify(text.slice(0, longest))} is not an amount: write a number and perhaps a suffix, such as 25, 250G or 1.5Gi`,
    );
  }
  const [, whole = "", decimals = "", exponent = "", suffix = ""] = parts;
  const factor = suffix === "" ? 1n : known.find(([name]) => name === suffix)?.[1];
  if (factor === undefined || (suffix !== "" && exponent !== "")) {
    const allowed = exponent !== "" ? "none after an exponent" : known.map(([name]) => name).join(" ");
    throw new RangeError(`"${text}" is not an amount of ${base}: suffixes are ${allowed}`);
  }
  const shift = Number(exponent) - decimals.length;
  const scale = factor === 0n ? 1n : one * factor; // m is a base unit itself
  const numerator = BigInt(whole + decimals) * scale * 10n ** BigInt(Math.max(shift, 0));
  const denominator = 10n ** BigInt(Math.max(-shift, 0));
  if (numerator % denominator !== 0n) throw new RangeError(`"${text}" is not a whole number of ${base}`);
  const amount = numerator / denominator;
  if (amount > maxAmount) throw new RangeError(`"${text}" is too large: an amount is at most ${maxAmount} ${base}`);
  return amount;
}
