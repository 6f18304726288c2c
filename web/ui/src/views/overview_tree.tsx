// A tree on the overview: its totals, and its fullest nodes in the same columns.
import { useEffect, useRef, useState } from "preact/hooks";
import type { ReadInfo } from "#gen/common_pb";
import type { NodeUsage, TreeSummary } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { NodeLink } from "../components/names";
import { Answer } from "../components/states";
import { counted } from "../format";
import { address } from "../router";
import { UsageCell } from "../tree/cell";
import { NodeMarks, WaitingCount, WaitingMark } from "../tree/marks";
import { matters, usualResources } from "../tree/words";

/** TreeCard shows one tree. */
export function TreeCard({ tree, filtered }: { tree: TreeSummary; filtered: boolean }) {
  const [card, seen] = useSeen();
  const name = tree.name;
  return (
    <section class="card tree-card" ref={card} aria-label={`Tree ${name}`}>
      <header>
        <h2>
          <a href={address("tree", { tree: name })}>
            <bdi>{name}</bdi>
          </a>
        </h2>
        <WaitingCount tree={name} node="" count={tree.waitingRequests} since={tree.waitingSinceLedgerMs} />
        {tree.deniedRequests > 0n && (
          <a class="pill" href={address("node", { tree: name, tab: "events" })}>
            {String(tree.deniedRequests)} denied in ten minutes
          </a>
        )}
        {!filtered && tree.waitingRequests === 0n && tree.deniedRequests === 0n && <span class="quiet">no request waits</span>}
        <span class="quiet tree-card-size">
          {!filtered && `${counted(tree.nodeCount, "node")}, `}policy <bdi>{tree.policy}</bdi>
        </span>
      </header>
      {seen && <Usage tree={name} />}
    </section>
  );
}

/** How many nodes below the root a card has. */
const most = 5;

interface Shown {
  root?: NodeUsage;
  nodes: NodeUsage[];
  read?: ReadInfo;
}

/** Usage has the root, and the nodes with the largest share of a limit in use. */
function Usage({ tree }: { tree: string }) {
  const read = useRead<Shown>(`fullest ${tree}`, { tree, usage: true, queue: true }, async (fresh, signal) => {
    const ask = { tree, countWaiting: true, read: fresh };
    const [root, fullest] = await Promise.all([
      api.trees.getUsage(ask, { signal }),
      api.trees.getUsage({ ...ask, subtree: true, fullestFirst: true, pageSize: most + 1 }, { signal }),
    ]);
    const nodes = fullest.nodes.filter((n) => n.node && (n.waitingRequests > 0n || n.resources.some(matters)));
    return { root: root.nodes.find((n) => n.resources.length), nodes: nodes.slice(0, most), read: fullest.read };
  });
  return <Answer read={read}>{(u) => <UsageTable tree={tree} {...u} />}</Answer>;
}

function UsageTable({ tree, root, nodes }: Shown & { tree: string }) {
  const all = root ? [root, ...nodes] : nodes;
  const resources = usualResources(all);
  if (!all.length) return null;
  return (
    <table class="usage-table" style={{ "--resources": String(resources.length) }}>
      <caption class="hidden">Totals and fullest nodes of {tree}</caption>
      <thead>
        <tr>
          <th scope="col">{root ? "Total, and fullest nodes" : "Fullest nodes"}</th>
          {resources.map((r) => (
            <th key={r} scope="col">
              <bdi>{r}</bdi>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {all.map((node) => (
          <NodeRow key={node.node} {...{ tree, node, resources, nodes: all }} />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  tree: string;
  node: NodeUsage;
  resources: string[];
  nodes: NodeUsage[];
}

function NodeRow({ tree, node, resources, nodes }: RowProps) {
  const usages = new Map(node.resources.map((r) => [r.resource, r]));
  return (
    <tr class={node.node ? undefined : "usage-total"}>
      <th scope="row">
        <div class="node-facts">
          {node.node ? (
            <>
              <NodeLink tree={tree} node={node.node} />
              <NodeMarks node={node} />
              <WaitingMark tree={tree} node={node} />
            </>
          ) : (
            "Total"
          )}
        </div>
      </th>
      {resources.map((name) => {
        const usage = usages.get(name);
        return (
          <td key={name} data-title={name} class={usage ? "overview-usage" : undefined}>
            {usage && <UsageCell tree={tree} node={node.node} usage={usage} nodes={nodes} />}
          </td>
        );
      })}
    </tr>
  );
}

/** useSeen is true once an element was near the screen: cards of hundreds of trees are read as they are reached. */
function useSeen() {
  const ref = useRef<HTMLElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((e) => e.isIntersecting)) return;
        setSeen(true);
        observer.disconnect();
      },
      { rootMargin: "300px" },
    );
    if (ref.current) observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, seen] as const;
}
