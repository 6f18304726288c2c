// A tree grid of nodes, as the ARIA pattern describes it. The grid has the focus and says which row is the active one,
// so that only the rows on the screen need to exist.
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { address, go } from "../router";
import { GridRow } from "./grid_row";
import { activeIndex, keyOf, lastName, step, typeAhead, type Row } from "./rows";
import { rowHeight, useWindow } from "./window";

interface GridProps {
  tree: string;
  label: string;
  rows: Row[];
  resources: string[];
  /** Rows say what they are in, because they are not below their parents. */
  flat?: boolean;
  setOpen?: (path: string, open: boolean) => void;
  more?: (from: string) => void;
  /** Told of which levels rows are on the screen. */
  seen?: (from: ReadonlySet<string>) => void;
}

/** How long letters that are typed belong to one name, in milliseconds. */
const typing = 700;

/** UsageGrid shows nodes with their resources. */
export function UsageGrid(props: GridProps) {
  const { tree, rows, resources } = props;
  const id = useId();
  const [active, setActive] = useState<Row>();
  const view = useWindow(rows.length);
  const at = activeIndex(rows, active);
  const shown = rows.slice(view.first, view.end);
  const opened = useMemo(() => rows.flatMap((r) => (r.node && r.open ? [r.node] : [])), [rows]);
  const levels = [...new Set(shown.map((r) => r.from))].join("\n");
  useEffect(() => props.seen?.(new Set(levels.split("\n"))), [levels]);

  const goTo = (row: number) => {
    if (!rows[row]) return;
    setActive(rows[row]);
    view.show(row);
  };
  const onKeyDown = useKeys(props, at, view.page, goTo);
  const onScreen = at >= view.first && at < view.end && rows.length > 0;
  return (
    <div
      class="grid"
      role="treegrid"
      ref={view.box}
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-activedescendant={onScreen ? `${id}-${at}` : undefined}
      onKeyDown={onKeyDown}
      style={{ "--resources": String(resources.length) }}
    >
      <div role="rowgroup" class="grid-head">
        <GridHead resources={resources} />
      </div>
      <div role="rowgroup" class="grid-body" style={{ height: `${rows.length * rowHeight}px` }}>
        {shown.map((row, i) => (
          <GridRow
            key={keyOf(row)}
            {...{ id: `${id}-${view.first + i}`, index: view.first + i, tree, row, resources, opened, flat: props.flat }}
            active={view.first + i === at}
            activate={() => setActive(row)}
            setOpen={props.setOpen}
            more={props.more}
          />
        ))}
      </div>
    </div>
  );
}

function GridHead({ resources }: { resources: string[] }) {
  return (
    <div role="row" class="grid-row" aria-rowindex={1}>
      <span role="columnheader" class="grid-name">
        Node
      </span>
      {resources.map((r) => (
        <span role="columnheader" key={r}>
          <bdi>{r}</bdi>
        </span>
      ))}
      <span role="columnheader" class="grid-waiting">
        Waiting
      </span>
    </div>
  );
}

function useKeys(props: GridProps, at: number, page: number, goTo: (row: number) => void) {
  const typed = useRef({ text: "", until: 0 });
  return (event: KeyboardEvent) => {
    const row = props.rows[at];
    if (!row || event.altKey || event.ctrlKey || event.metaKey || event.target !== event.currentTarget) return;
    const next = step(event.key, props.rows, at, page);
    if (next) {
      typed.current.until = 0; // what is typed next is another name
      if ("to" in next) goTo(next.to);
      else props.setOpen?.(row.path, next.open);
    } else if (event.key === "Enter") {
      if (row.kind === "more") props.more?.(row.path);
      else if (row.kind === "node") go(address("node", { tree: props.tree, node: row.path }));
    } else if (event.key === " ") {
      if (row.open !== undefined) props.setOpen?.(row.path, !row.open);
    } else if (event.key.length === 1 && event.key !== "/") {
      const now = Date.now();
      const text = (now < typed.current.until ? typed.current.text : "") + event.key;
      typed.current = { text, until: now + typing };
      goTo(typeAhead(props.rows, at, text, (r) => lastName(props.tree, r.path)));
    } else {
      return;
    }
    event.preventDefault();
  };
}
