// A tree as a grid that opens level by level.
import { useEffect, useMemo, useState } from "preact/hooks";
import { FailureNote } from "../components/states";
import { route, setQuery } from "../router";
import { UsageGrid } from "./grid";
import { Levels } from "./levels";
import { chosenResources, ResourceChoice } from "./resources";
import { parentOf, treeRows } from "./rows";
import { usualResources } from "./words";

/** The longest list of open nodes that an address has, in characters. */
const longest = 1500;

/** isReachable is true if all nodes between the top and one are open. */
function isReachable(top: string, path: string, open: ReadonlySet<string>): boolean {
  for (let above = parentOf(path); above !== top; above = parentOf(above)) {
    if (above === "" || !open.has(above)) return false;
  }
  return true;
}

/** useOpen is which nodes are open. The address has them as long as they are few. */
function useOpen(): [ReadonlySet<string>, (path: string, open: boolean) => void] {
  const [open, set] = useState<ReadonlySet<string>>(() => new Set(route.value.query.get("open")?.split(",") ?? []));
  const change = (path: string, opens: boolean) => {
    const next = new Set(open);
    if (opens) next.add(path);
    else next.delete(path);
    next.delete("");
    set(next);
    const text = [...next].join(",");
    setQuery({ open: text.length <= longest ? text : undefined });
  };
  return [open, change];
}

/** Browse shows a tree, or a node of it and what is below. */
export function Browse({ tree, top }: { tree: string; top: string }) {
  const levels = useMemo(() => new Levels(tree), [tree]);
  const [open, setOpen] = useOpen();
  useEffect(() => levels.setOpen([top, ...[...open].filter((p) => p !== top && isReachable(top, p, open))]), [levels, top, open]);
  useEffect(() => () => levels.setOpen([]), [levels]);
  const known = levels.known.value;
  const first = known.get(top);
  const all = first?.top?.resources ?? first?.nodes?.find((n) => n.resources.length)?.resources ?? [];
  const [usual, setUsual] = useState<string[]>();
  useEffect(() => {
    // What is usual is decided once: columns do not come and go while numbers change.
    if (!usual && first?.nodes) setUsual(usualResources([...(first.top ? [first.top] : []), ...first.nodes]));
  }, [first]);
  const names = all.map((r) => r.resource);
  const shown = chosenResources(names) ?? usual ?? [];
  if (first?.failure && !first.nodes) return <FailureNote failure={first.failure} />;
  return (
    <>
      {names.length > 1 && <ResourceChoice all={names} shown={shown} />}
      <UsageGrid
        {...{ tree, resources: shown, setOpen }}
        label={`Nodes of ${tree}`}
        rows={treeRows(top, known, open)}
        more={(from) => levels.more(from)}
        seen={(from) => levels.setSeen(from)}
      />
      {first?.filtered && <p class="quiet">Only what you may see is shown.</p>}
    </>
  );
}
