// A tree as a map: a row for each level, the width of a node is its limit, and what is used of it is filled.
import { useRef, useState } from "preact/hooks";
import type { GetUsageResponse } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead, type Fresh } from "../api/read";
import { shareOf } from "../components/bar";
import { Answer } from "../components/states";
import { nodeName } from "../format";
import { address, route, setQuery } from "../router";
import { icicle, nextCell, type Cell } from "./icicle";
import { lastName, parentOf } from "./rows";
import { fillOf, roomText, usedText, usualResources } from "./words";

/** How many levels below the top are drawn, if their nodes come in one page. */
const levels = 3;

/** readLevels reads as many levels as come in one page. */
async function readLevels(tree: string, node: string, read: Fresh, signal: AbortSignal): Promise<GetUsageResponse> {
  for (let maxDepth = levels; ; maxDepth--) {
    const page = await api.trees.getUsage({ tree, node, subtree: true, maxDepth, pageSize: 1000, read }, { signal });
    if (maxDepth === 1 || !page.nextPageToken) return page;
  }
}

/** TreeMap shows one resource of a node and of the levels below it. */
export function TreeMap({ tree, top }: { tree: string; top: string }) {
  const read = useRead<GetUsageResponse>(`map ${tree} ${top}`, { tree, node: top, usage: true }, (fresh, signal) =>
    readLevels(tree, top, fresh, signal),
  );
  return (
    <Answer read={read}>
      {({ nodes, nextPageToken }) => {
        const names = nodes[0]?.resources.map((r) => r.resource) ?? [];
        const chosen = route.value.query.get("resource") ?? "";
        const resource = names.includes(chosen) ? chosen : (usualResources(nodes)[0] ?? "");
        return (
          <>
            <div class="filters">
              <label>
                Resource
                <select value={resource} onChange={(e) => setQuery({ resource: e.currentTarget.value })}>
                  {names.map((r) => (
                    <option key={r}>{r}</option>
                  ))}
                </select>
              </label>
              {top && (
                <button onClick={() => setQuery({ node: parentOf(top) })}>
                  Up to <bdi>{lastName(tree, parentOf(top))}</bdi>
                </button>
              )}
            </div>
            <Cells tree={tree} cells={icicle(nodes, resource)} />
            <Legend />
            <p class="quiet">
              The width of a node is its limit, and what is used is filled. Nodes too narrow to see are left out.
              {nextPageToken && " Only the first 1,000 nodes are drawn."} The grid has the
              same numbers as a table.
            </p>
          </>
        );
      }}
    </Answer>
  );
}

const kinds = [
  ["free", "used"],
  ["nearly", "90 % or more"],
  ["over", "over the limit"],
  ["share", "beyond the share"],
  ["unlimited", "without a limit"],
];

function Legend() {
  return (
    <ul class="legend">
      {kinds.map(([kind, words]) => (
        <li key={kind}>
          <span class={`map-swatch map-${kind}`} aria-hidden="true">
            <span class="map-used" />
          </span>
          {words}
        </li>
      ))}
    </ul>
  );
}

function Cells({ tree, cells }: { tree: string; cells: Cell[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(cells[0]?.path);
  const at = cells.find((c) => c.path === active) ?? cells[0];
  const onKeyDown = (event: KeyboardEvent) => {
    const next = at && nextCell(cells, at, event.key);
    if (!next) return;
    event.preventDefault();
    setActive(next.path);
    box.current?.querySelectorAll<HTMLElement>("button")[cells.indexOf(next)]?.focus();
  };
  const depth = Math.max(0, ...cells.map((c) => c.depth));
  return (
    <>
      <div class="map" role="group" aria-label="Map" ref={box} onKeyDown={onKeyDown} style={{ height: `${(depth + 1) * 64}px` }}>
        {cells.map((c) => (
          <MapCell key={c.path} tree={tree} cell={c} active={c === at} activate={() => setActive(c.path)} />
        ))}
      </div>
      {at && (
        <p role="status">
          <a href={address("node", { tree, node: at.path })}>
            <bdi>{nodeName(tree, at.path)}</bdi>
          </a>
          : {usedText(at.usage)}
          {roomText(at.usage) && `, ${roomText(at.usage)}`}
        </p>
      )}
    </>
  );
}

interface CellProps {
  tree: string;
  cell: Cell;
  active: boolean;
  activate: () => void;
}

function MapCell({ tree, cell, active, activate }: CellProps) {
  const text = `${lastName(tree, cell.path)} ${usedText(cell.usage)}`;
  const zoom = () => setQuery({ node: cell.depth > 0 ? cell.path : parentOf(cell.path) });
  return (
    <button
      class={`map-cell map-${fillOf(cell.usage)}`}
      style={{ left: `${cell.x * 100}%`, width: `${cell.width * 100}%`, top: `${cell.depth * 64}px` }}
      tabIndex={active ? 0 : -1}
      aria-label={`${text}. ${cell.depth > 0 ? "Zoom in" : "Zoom out"}`}
      title={text}
      onFocus={activate}
      onMouseEnter={activate}
      onClick={zoom}
    >
      <span class="map-used" style={{ width: `${(shareOf(cell.usage) ?? 0) * 100}%` }} />
      <span class="map-text">
        <bdi>{lastName(tree, cell.path)}</bdi> <span class="map-numbers">{usedText(cell.usage)}</span>
      </span>
    </button>
  );
}
