// Amounts as people write them, such as 25, 1.5Gi or 500m, and ranges of amounts such as 4..16/4. The grammar and the
// messages are those of the command line.
import { Unit } from "#gen/tree_pb";
import { exact, suffixes } from "../format";

/** The largest amount that the ledger takes, in base units. */
export const maxAmount = 2n ** 62n - 1n;

const maxLength = 64;
const pattern = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?([A-Za-z]*)$/;

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
    const advice = "write a number and perhaps a suffix, such as 25, 250G or 1.5Gi";
    throw new AmountError(`${quoted(text)} is not an amount: ${advice}`);
  }
  const [, whole = "", decimals = "", suffix = ""] = parts;
  return checked(text, unit, BigInt(whole + decimals) * factorOf(text, suffix, unit), 10n ** BigInt(decimals.length));
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
  const found = suffixes.find(([name]) => name === suffix);
  if (found) return one * found[1];
  const known = "suffixes are k M G T P E and Ki Mi Gi Ti Pi Ei, and m for the unit milli";
  throw new AmountError(`${quoted(text)} is not an amount: ${known}`);
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
