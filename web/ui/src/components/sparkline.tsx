// A small curve without axes beside a figure, which says the same in words.

const [width, height] = [120, 28];

/** Sparkline draws values over time from zero to the highest; nothing for fewer than two, or if all are zero. */
export function Sparkline({ values }: { values: number[] }) {
  const highest = Math.max(...values);
  if (values.length < 2 || highest <= 0) return null;
  const points = values.map((v, i) => {
    const x = (i / (values.length - 1)) * width;
    return `${x.toFixed(1)},${(height - 2 - (v / highest) * (height - 4)).toFixed(1)}`;
  });
  return (
    <svg class="sparkline" viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="sparkline-area" d={`M0,${height}L${points.join("L")}L${width},${height}Z`} />
      <path class="sparkline-line" d={`M${points.join("L")}`} />
    </svg>
  );
}
