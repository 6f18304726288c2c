// One row of the tree grid.
import type { NodeUsage } from "#gen/tree_pb";
import { nodeName } from "../format";
import { address } from "../router";
import { UsageCell } from "./cell";
import { NodeMarks, WaitingMark } from "./marks";
import { lastName, parentOf, type Row } from "./rows";
import { rowHeight } from "./window";

interface RowProps {
  id: string;
  index: number;
  tree: string;
  row: Row;
  resources: string[];
  /** The nodes that are open, which are above others. */
  opened: NodeUsage[];
  flat?: boolean;
  active: boolean;
  activate: () => void;
  setOpen?: (path: string, open: boolean) => void;
  more?: (from: string) => void;
}

/** GridRow is at its place in the whole list, whatever else is drawn. */
export function GridRow(props: RowProps) {
  const { row, index } = props;
  return (
    <div
      role="row"
      id={props.id}
      class={props.active ? "grid-row grid-active" : "grid-row"}
      aria-rowindex={index + 2}
      aria-level={row.level}
      aria-expanded={row.open}
      aria-posinset={row.place}
      aria-setsize={row.place === undefined ? undefined : (row.siblings ?? -1)}
      style={{ top: `${index * rowHeight}px`, "--level": String(Math.min(row.level, 9)) }}
      onClick={props.activate}
    >
      {row.node ? <NodeCells {...props} node={row.node} /> : <NoteCell {...props} />}
    </div>
  );
}

function NodeCells({ tree, row, node, resources, opened, flat, setOpen }: RowProps & { node: NodeUsage }) {
  const usages = new Map(node.resources.map((r) => [r.resource, r]));
  return (
    <>
      <span role="rowheader" class="grid-name">
        <span class="grid-node">
          <span class="grid-twisty" aria-hidden="true" onClick={() => row.open !== undefined && setOpen?.(row.path, !row.open)}>
            {row.open === undefined ? "" : row.open ? "▾" : "▸"}
          </span>
          <a href={address("node", { tree, node: row.path })} tabIndex={-1} title={nodeName(tree, row.path)}>
            <bdi>{lastName(tree, row.path)}</bdi>
          </a>
        </span>
        <span class="grid-marks">
          <span class="grid-narrow">
            <WaitingMark tree={tree} node={node} inert />
          </span>
          {flat && row.path.includes("/") && (
            <span class="quiet">
              in <bdi>{parentOf(row.path)}</bdi>
            </span>
          )}
          <NodeMarks node={node} />
        </span>
      </span>
      {resources.map((name) => (
        <span role="gridcell" key={name}>
          {usages.has(name) ? <UsageCell tree={tree} node={row.path} usage={usages.get(name)!} nodes={opened} /> : <span class="quiet">not shown</span>}
        </span>
      ))}
      <span role="gridcell" class="grid-waiting">
        <WaitingMark tree={tree} node={node} inert />
      </span>
    </>
  );
}

/** NoteCell stands for nodes that are not there yet. */
function NoteCell({ row, resources, more }: RowProps) {
  return (
    <span role="gridcell" class="grid-note" aria-colspan={resources.length + 2}>
      {row.kind === "reading" && <span class="quiet">Reading…</span>}
      {row.kind === "failure" && <span class="usage-word">{row.failure?.text}</span>}
      {row.kind === "more" && (
        <button tabIndex={-1} onClick={() => more?.(row.path)}>
          Show more
        </button>
      )}
    </span>
  );
}
