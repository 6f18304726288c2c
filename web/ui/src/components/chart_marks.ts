// The marks of the axis of a chart.
import { ticks } from "d3-array";

/** Measure is what the values of a chart are: numbers, bytes in powers of 1024 or 1000, thousandths of something, or milliseconds. */
export type Measure = "number" | "bytes" | "decimal bytes" | "thousandths" | "span";

/** Steps in which people count what a measure has, ascending. */
const steps: Record<Measure, readonly number[]> = {
  number: [1],
  bytes: [0, 1, 2, 3, 4, 5, 6].map((power) => 1024 ** power),
  "decimal bytes": [0, 1, 2, 3, 4, 5, 6].map((power) => 1000 ** power),
  thousandths: [1, 1000],
  span: [1000, 60_000, 3_600_000, 86_400_000],
};

/** marksUpTo are about four round values from 0 to the highest, in one unit: 0, 512Gi, 1Ti and not 0, 500G, 1T. */
export function marksUpTo(highest: number, measure: Measure): number[] {
  const step = steps[measure].findLast((s) => s <= highest) ?? steps[measure][0]!;
  const marks = ticks(0, highest / step || 1, 4).map((n) => n * step);
  return marks.filter((m) => Number.isInteger(m / (steps[measure][0] ?? 1)));
}
