// Nodes of a tree by name or by how full they are, as a list.
import { useRef, useState, useEffect } from "preact/hooks";
import type { NodeUsage } from "#gen/tree_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { Answer, Empty } from "../components/states";
import { UsageGrid } from "./grid";
import { chosenResources, ResourceChoice } from "./resources";
import { inPlace, listRows } from "./rows";
import { usualResources } from "./words";

interface FoundProps {
  tree: string;
  top: string;
  name: string;
  /** At least this part of a limit is used, in percent; 0 for any. */
  full: number;
}

/** Found lists nodes: fullest first if only full ones are wanted, otherwise by path. They keep their places. */
export function Found({ tree, top, name, full }: FoundProps) {
  const key = `found ${tree} ${top} ${name} ${full}`;
  const ask = { tree, node: top, subtree: true, nameContains: name, atLeastPercent: full, fullestFirst: full > 0 };
  const pages = usePages<NodeUsage>(key, { tree, usage: true, queue: true }, async (read, pageToken, signal) => {
    const page = await api.trees.getUsage({ ...ask, countWaiting: true, pageSize: 100, pageToken, read }, { signal });
    return { rows: page.nodes, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  const places = useRef({ key, at: new Map<string, number>() });
  if (places.current.key !== key) places.current = { key, at: new Map() };
  const nodes = inPlace(places.current.at, pages.data?.rows ?? []);
  for (const n of nodes) if (!places.current.at.has(n.node)) places.current.at.set(n.node, places.current.at.size);

  const names = nodes.find((n) => n.resources.length)?.resources.map((r) => r.resource) ?? [];
  const [usual, setUsual] = useState<string[]>();
  useEffect(() => {
    if (nodes.length) setUsual((now) => now ?? usualResources(nodes));
  }, [nodes.length]);
  const shown = chosenResources(names) ?? usual ?? [];
  return (
    <Answer read={pages}>
      {(page) =>
        nodes.length ? (
          <>
            {names.length > 1 && <ResourceChoice all={names} shown={shown} />}
            <UsageGrid tree={tree} label={`Nodes found in ${tree}`} rows={listRows(nodes)} resources={shown} flat />
            {pages.more && <button onClick={pages.more}>Show more</button>}
            {page.filtered && <p class="quiet">Only what you may see is shown.</p>}
          </>
        ) : (
          <Empty>
            {full > 0 ? `No node uses ${full} % or more of a limit` : "No node is found"}
            {name && " with this name"}.
          </Empty>
        )
      }
    </Answer>
  );
}
