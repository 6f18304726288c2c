// Amounts as people write them, such as 25, 1.5Gi or 500m, and ranges of amounts such as 4..16/4. The grammar and the
// messages are those of the command line.
import { Unit } from "#gen/tree_pb";
import { exact, suffixes } from "../format";

/** The largest amount that the ledger takes, in base units. */
export const maxAmount = 2n ** 62n - 1n;

const maxLength = 64;
const pattern = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([-+]?[0-9]{1,2}))?([A-Za-z]*)$/;

/** AmountError says why a text is not an amount. */
export class AmountError extends Error {}

/** parseQuantity reads an amount and returns base units. It throws an AmountError. */
export function parseQuantity(text: string, unit: Unit): bigint {
  if (text === "" || text.length > maxLength) {
    throw new AmountError(`${quoted(text)} is not an amount: it has 1 to ${maxLength} characters, such as 25 or 1.5Gi`);
  }
  if (text.startsWith("-")) throw new AmountError(`${quoted(text)} is negative: an amount is at least 0`);
  const parts = pattern.exec(text);
  if (!parts) {
    throw new AmountError(`${quoted(text)} is not an amount: ${numberAdvice(text)}`);
  }
  const [, whole = "", decimals = "", exponent = "", suffix = ""] = parts;
  if (exponent !== "" && suffix !== "") {
    throw new AmountError(`${quoted(text)} is not an amount: write an exponent or a suffix, not both`);
  }
  const shift = Number(exponent) - decimals.length;
  const digits = BigInt(whole + decimals) * 10n ** BigInt(Math.max(shift, 0));
  return checked(text, unit, digits * factorOf(text, suffix, unit), 10n ** BigInt(Math.max(-shift, 0)));
}

/** numberAdvice says how a text is written that is not a number with a suffix. */
function numberAdvice(text: string): string {
  const mark = /^[0-9]+([_,' ])[0-9]+/.exec(text)?.[1];
  if (mark === ",") {
    return "a comma has two meanings: write 1.5 with a point, and 1500 without marks between the digits";
  }
  if (mark) return "write the digits without marks between them, such as 1500";
  return "write a number and perhaps a suffix, such as 25, 250G or 1.5Gi";
}

/** suffixAdvice says how an unknown suffix that people use is written: they do not agree on what GB is. */
function suffixAdvice(number: string, suffix: string, unit: Unit): string {
  if (unit === Unit.BYTES && suffix.toLowerCase() === "b") return `the unit is bytes: write ${number}`;
  const name = suffix.toLowerCase().replace(/b$/, "");
  const half = suffixes.length / 2;
  for (const [i, [decimal]] of suffixes.slice(0, half).entries()) {
    const binary = suffixes[i + half]?.[0] ?? "";
    const ofTwo = `${number}${binary} (2^${10 * (i + 1)})`;
    if (name === decimal.toLowerCase()) return `write ${number}${decimal} (10^${3 * (i + 1)}) or ${ofTwo}`;
    if (name === binary.toLowerCase()) return `write ${ofTwo}`;
  }
  return "suffixes are k M G T P E and Ki Mi Gi Ti Pi Ei, and m for the unit milli";
}

function checked(text: string, unit: Unit, numerator: bigint, denominator: bigint): bigint {
  if (numerator % denominator !== 0n) {
    throw new AmountError(`${quoted(text)} is not a whole number of ${baseUnits(unit)}`);
  }
  const amount = numerator / denominator;
  if (amount > maxAmount) {
    throw new AmountError(`${quoted(text)} is too large: an amount is at most ${exact(maxAmount, unit)}`);
  }
  return amount;
}

/** factorOf is how many base units one with the suffix is. */
function factorOf(text: string, suffix: string, unit: Unit): bigint {
  const one = unit === Unit.MILLI ? 1000n : 1n;
  if (suffix === "") return one;
  if (suffix === "m") {
    if (unit === Unit.MILLI) return 1n;
    throw new AmountError(`${quoted(text)} is not an amount: m means thousandths, and the unit is ${unitName(unit)}`);
  }
  const known = unit === Unit.BYTES ? suffix.replace(/iB$/, "i") : suffix;
  const found = suffixes.find(([name]) => name === known);
  if (found) return one * found[1];
  const advice = suffixAdvice(text.slice(0, text.length - suffix.length), suffix, unit);
  throw new AmountError(`${quoted(text)} is not an amount: ${advice}`);
}

/** Amounts is one amount, or a range if it has a step. */
export interface Amounts {
  least: bigint;
  most?: bigint;
  step?: bigint;
}

const rangeMark = "..";

/** parseAmounts reads an amount, or a range LEAST..MOST or LEAST..MOST/STEP. It throws an AmountError. */
export function parseAmounts(text: string, unit: Unit): Amounts {
  const at = text.indexOf(rangeMark);
  if (at < 0) return { least: parseQuantity(text, unit) };
  const [most = "", step = "1"] = text.slice(at + rangeMark.length).split("/", 2);
  const range = readRange(text, [text.slice(0, at), most, step], unit);
  if (range.step === 0n) throw new AmountError(`the range ${quoted(text)} has steps of 0; take larger ones`);
  return range;
}

function readRange(text: string, parts: [string, string, string], unit: Unit): Amounts {
  try {
    const [least, most, step] = parts.map((part) => parseQuantity(part, unit));
    return { least: least!, most: most!, step: step! };
  } catch (e) {
    if (!(e instanceof AmountError)) throw e;
    throw new AmountError(`${quoted(text)} is not a range such as 4..16/4: ${e.message}`);
  }
}

/** unitName is the name of a unit in a manifest. */
export function unitName(unit: Unit): string {
  switch (unit) {
    case Unit.MILLI:
      return "milli";
    case Unit.BYTES:
      return "bytes";
    case Unit.ITEMS:
      return "items";
    default:
      return "count";
  }
}

function baseUnits(unit: Unit): string {
  if (unit === Unit.BYTES) return "bytes";
  return unit === Unit.MILLI ? "thousandths" : "things";
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, maxLength));
}
