// Amounts and spans in the form that the command line prints. These functions format numbers of the server and never
// compute with capacity.
import { Unit } from "#gen/tree_pb";
import type { Limit } from "#gen/common_pb";

/** Suffixes of amounts, in the order in which exact prefers them. */
export const suffixes: readonly [string, bigint][] = [
  ["k", 10n ** 3n],
  ["M", 10n ** 6n],
  ["G", 10n ** 9n],
  ["T", 10n ** 12n],
  ["P", 10n ** 15n],
  ["E", 10n ** 18n],
  ["Ki", 2n ** 10n],
  ["Mi", 2n ** 20n],
  ["Gi", 2n ** 30n],
  ["Ti", 2n ** 40n],
  ["Pi", 2n ** 50n],
  ["Ei", 2n ** 60n],
];

/** exact writes an amount exactly: bytes with the suffix that leaves the fewest digits, thousandths with m. */
export function exact(amount: bigint, unit: Unit): string {
  if (unit === Unit.MILLI) return amount % 1000n === 0n ? String(amount / 1000n) : `${amount}m`;
  let best = String(amount);
  if (unit !== Unit.BYTES || amount === 0n) return best;
  for (const [name, factor] of suffixes) {
    const text = `${amount / factor}${name}`;
    if (amount % factor === 0n && text.length < best.length) best = text;
  }
  return best;
}

/** short writes an amount for a table: exactly if that is short, otherwise rounded down and marked with ~. */
export function short(amount: bigint, unit: Unit): string {
  const text = exact(amount, unit);
  if (unit !== Unit.BYTES || text.length <= 7 || amount < 0n) return text;
  const binary = suffixes.filter(([name]) => name.endsWith("i"));
  const [name, factor] = binary.findLast(([, f]) => f <= amount) ?? suffixes[0]!;
  const hundredths = (amount * 100n) / factor;
  return `~${hundredths / 100n}.${String(hundredths % 100n).padStart(2, "0")}${name}`;
}

/** limitText writes a limit as the command line does. */
export function limitText(limit: Limit | undefined, unit: Unit): string {
  switch (limit?.value.case) {
    case "amount":
      return short(limit.value.value, unit);
    case "advisory":
      return `advisory:${short(limit.value.value, unit)}`;
    case "unlimited":
      return "unlimited";
    default:
      return "unset";
  }
}

const steps: readonly [string, number][] = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1000],
];

/** span writes a length of time with its two largest units, such as 2h5m. */
export function span(ms: bigint | number): string {
  let rest = Math.max(0, Number(ms));
  const parts: string[] = [];
  for (const [name, length] of steps) {
    const count = Math.floor(rest / length);
    rest -= count * length;
    if (count > 0) parts.push(`${count}${name}`);
    else if (parts.length) break;
    if (parts.length === 2) break;
  }
  return parts.join("") || "0s";
}

const twoDigits = (n: number) => String(n).padStart(2, "0");

/** localText writes a time in the zone of this machine, such as 2026-11-30 17:39:10. */
export function localText(at: Date): string {
  const day = [at.getFullYear(), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(twoDigits).join(":")}`;
}

/** clockText writes the hours and minutes of a time in the zone of this machine. */
export function clockText(at: Date): string {
  return localText(at).slice(11, 16);
}

/** Within this many milliseconds, times are written by how far they are. */
const relativeWithin = 30 * 86_400_000;

/** relative writes how far a time is from the present one, in its largest unit; undefined if it is far. */
export function relative(at: number, present: number): string | undefined {
  const distance = Math.abs(at - present);
  if (distance > relativeWithin) return undefined;
  if (distance < 2000) return "now";
  const [unit, length] = steps.find(([, l]) => distance >= l)!;
  const text = `${Math.floor(distance / length)} ${unit === "m" ? "min" : unit}`;
  return at > present ? `in ${text}` : `${text} ago`;
}

/** nodeName writes a node as the command line takes it: TREE, or TREE:node/path. */
export function nodeName(tree: string, node: string): string {
  return node ? `${tree}:${node}` : tree;
}

/** The marks that change the direction of the text behind them. */
const directionMarks = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** optionText is a text for an <option>, in which an element that isolates directions has no effect. */
export function optionText(text: string): string {
  return text.replace(directionMarks, "\ufffd");
}

/** AmountText writes an amount of a resource of a tree. */
export type AmountText = (tree: string, resource: string, amount: bigint) => string;

/** counted writes a number of things. */
export function counted(count: bigint | number, one: string, many: string = `${one}s`): string {
  return `${count} ${Number(count) === 1 ? one : many}`;
}

const naturalOrder = new Intl.Collator("en", { numeric: true });

/** natural orders names as people count: account-2 comes before account-10. */
export function natural(a: string, b: string): number {
  return naturalOrder.compare(a, b) || (a < b ? -1 : Number(a > b));
}
