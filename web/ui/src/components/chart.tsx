// Values over time as curves or stacked areas, with the same numbers as a table.
import { max } from "d3-array";
import { area, curveStepAfter, line, stack } from "d3-shape";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { clockText } from "../format";
import { marksUpTo, type Measure } from "./chart_marks";

/** Series is one row of values; undefined where there is none. */
export interface Series {
  name: string;
  values: (number | undefined)[];
  /** A limit is drawn as a dashed line, and belongs to no stack. */
  limit?: boolean;
  /** The number of the colour and strokes of an area; its place among the series if it is absent. */
  look?: number;
}

interface ChartProps {
  title: string;
  times: Date[];
  series: Series[];
  /** Stacked areas instead of curves. */
  stacked?: boolean;
  format?: (value: number) => string;
  /** What the values are, which decides about the marks of the axis; plain numbers if it is absent. */
  measure?: Measure;
}

const height = 180;
const margin = { top: 8, right: 8, bottom: 22, left: 56 };

/** TimeChart draws series over time. */
export function TimeChart({ title, times, series, stacked, format = String, measure = "number" }: ChartProps) {
  const [box, width] = useWidth();
  const scale = newScale(times, top(series, stacked), width, measure);
  return (
    <figure class="chart" ref={box}>
      <figcaption>{title}</figcaption>
      <svg width={width} height={height} role="img" aria-label={`${title}; the numbers are in the table below`}>
        <Axes scale={scale} times={times} format={format} />
        {stacked ? <Areas scale={scale} series={series} /> : <Grounds scale={scale} series={series} />}
        {series.map((s, i) =>
          stacked && !s.limit ? null : (
            <path key={s.name} class={s.limit ? "chart-limit" : `chart-line line-${i % 6}`} d={curve(scale, s.values)} />
          ),
        )}
      </svg>
      <Legend series={series} stacked={stacked} />
      <Numbers title={title} times={times} series={series} format={format} />
    </figure>
  );
}

interface Scale {
  x: (i: number) => number;
  y: (value: number) => number;
  marks: number[];
  right: number;
}

function newScale(times: Date[], highest: number, width: number, measure: Measure): Scale {
  const right = Math.max(margin.left + 50, width - margin.right);
  const marks = marksUpTo(highest, measure);
  // A limit has room above it for its band.
  const most = Math.max((highest || 1) * 1.06, marks.at(-1) ?? 1);
  const bottom = height - margin.bottom;
  return {
    x: (i) => margin.left + (i / Math.max(1, times.length)) * (right - margin.left),
    y: (value) => bottom - (value / most) * (bottom - margin.top),
    marks,
    right,
  };
}

/** top is the highest value to draw. */
function top(series: Series[], stacked?: boolean): number {
  const lines = series.filter((s) => s.limit || !stacked).flatMap((s) => s.values);
  const piles = stacked ? pile(series).map((values) => values.reduce((sum, v) => sum + v, 0)) : [];
  return max([...lines, ...piles], (v) => v) ?? 0;
}

/** pile has the values of all stacked series at each time. */
function pile(series: Series[]): number[][] {
  const kept = series.filter((s) => !s.limit);
  return (kept[0]?.values ?? []).map((_, i) => kept.map((s) => s.values[i] ?? 0));
}

function curve(scale: Scale, values: (number | undefined)[]): string {
  const path = line<number | undefined>()
    .defined((v) => v !== undefined)
    .x((_, i) => scale.x(i))
    .y((v) => scale.y(v ?? 0))
    .curve(curveStepAfter);
  return path(toEnd(values)) ?? "";
}

/** toEnd repeats the last value, because a step lasts until the next one begins. */
function toEnd<T>(values: T[]): T[] {
  return values.length ? [...values, values.at(-1)!] : values;
}

/** Grounds fills what is below the first curve, and what is above a limit. */
function Grounds({ scale, series }: { scale: Scale; series: Series[] }) {
  const limit = series.find((s) => s.limit);
  return (
    <>
      {series[0] && !series[0].limit && <path class="chart-below" d={between(series[0].values, scale.y(0), scale)} />}
      {limit && <path class="chart-above" d={between(limit.values, margin.top, scale)} />}
    </>
  );
}

/** between is the area between values and a line. */
function between(values: (number | undefined)[], edge: number, scale: Scale): string {
  const shape = area<number | undefined>()
    .defined((v) => v !== undefined)
    .x((_, i) => scale.x(i))
    .y0(edge)
    .y1((v) => scale.y(v ?? 0))
    .curve(curveStepAfter);
  return shape(toEnd(values)) ?? "";
}

function Areas({ scale, series }: { scale: Scale; series: Series[] }) {
  const id = useId();
  const kept = series.filter((s) => !s.limit);
  const layers = stack<number[], number>()
    .keys(kept.map((_, i) => i))
    .value((values, i) => values[i] ?? 0)(toEnd(pile(series)));
  const shape = area<[number, number]>()
    .x((_, i) => scale.x(i))
    .y0((d) => scale.y(d[0]))
    .y1((d) => scale.y(d[1]))
    .curve(curveStepAfter);
  return (
    <>
      {kept.map((s, i) => (
        <pattern key={s.name} id={`${id}${i}`} width="8" height="8" patternUnits="userSpaceOnUse">
          <rect width="8" height="8" class={`fill-${lookOf(s, i)}`} />
          <path d={strokes[lookOf(s, i)]!} class="pattern" />
        </pattern>
      ))}
      {layers.map((layer, i) => (
        <path key={kept[i]!.name} class="layer" d={shape(layer as unknown as [number, number][]) ?? ""} fill={`url(#${id}${i})`} />
      ))}
    </>
  );
}

/** Strokes tell areas apart without their colour. */
const strokes = ["", "M4 4h1v1h-1z", "M0 8L8 0", "M0 0L8 8", "M0 4H8", "M4 0V8"];

function lookOf(s: Series, at: number): number {
  return s.look ?? at % strokes.length;
}

function Axes({ scale, times, format }: { scale: Scale; times: Date[]; format: (v: number) => string }) {
  const every = Math.max(1, Math.ceil(times.length / 6));
  return (
    <g class="axes" aria-hidden="true">
      {scale.marks.map((m) => (
        <g key={m}>
          <line x1={margin.left} x2={scale.right} y1={scale.y(m)} y2={scale.y(m)} />
          <text x={margin.left - 6} y={scale.y(m) + 4} text-anchor="end">
            {format(m)}
          </text>
        </g>
      ))}
      {times.map((t, i) =>
        i % every === 0 ? (
          <text key={i} x={scale.x(i)} y={height - 4} text-anchor={i ? "middle" : "start"}>
            {clockText(t)}
          </text>
        ) : null,
      )}
    </g>
  );
}

function Legend({ series, stacked }: { series: Series[]; stacked?: boolean }) {
  let filled = 0;
  return (
    <ul class="legend">
      {series.map((s, i) => (
        <li key={s.name}>
          <svg width="22" height="12" aria-hidden="true">
            {s.limit || !stacked ? (
              <path d="M0 6H22" class={s.limit ? "chart-limit" : `chart-line line-${i % 6}`} />
            ) : (
              <Swatch look={lookOf(s, filled++)} />
            )}
          </svg>
          <bdi>{s.name}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Swatch({ look }: { look: number }) {
  return (
    <>
      <rect width="22" height="12" class={`fill-${look}`} />
      <path d={strokes[look]!} class="pattern" transform="translate(2 2)" />
    </>
  );
}

/** Numbers has the values as a table, newest first; only times at which something changed. */
function Numbers({ title, times, series, format = String }: ChartProps) {
  const changed = times.map((_, i) => i).filter((i) => i === 0 || series.some((s) => s.values[i] !== s.values[i - 1]));
  return (
    <details>
      <summary>Numbers</summary>
      <div class="scroll" role="region" aria-label={`Numbers of ${title}`} tabIndex={0}>
        <table class="list">
          <thead>
            <tr>
              <th scope="col">From</th>
              {series.map((s) => (
                <th key={s.name} scope="col" class="number">
                  <bdi>{s.name}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {changed.reverse().map((i) => (
              <tr key={i}>
                <td>{clockText(times[i]!)}</td>
                {series.map((s) => (
                  <td key={s.name} class="number">
                    {s.values[i] === undefined ? "–" : format(s.values[i]!)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** useWidth follows the width of an element. */
function useWidth() {
  const ref = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const observer = new ResizeObserver((entries) => setWidth(Math.floor(entries[0]!.contentRect.width)));
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width] as const;
}
