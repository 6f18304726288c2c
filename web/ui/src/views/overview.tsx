// Every tree with its fullest nodes, what waits and what was denied there, and the health of the cluster in one line.
import { useEffect, useRef, useState } from "preact/hooks";
import { AccessMode } from "#gen/access_pb";
import type { GetUsageResponse, NodeUsage, TreeSummary } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { NodeLink } from "../components/names";
import { SignIn } from "../components/sign_in";
import { Answer, Empty } from "../components/states";
import { address } from "../router";
import { UsageCell } from "../tree/cell";
import { NodeMarks, WaitingCount, WaitingMark } from "../tree/marks";
import { matters } from "../tree/words";
import { ClusterLine } from "./cluster_line";

/** Overview is the first view. */
export function Overview() {
  const interest = { queue: true, usage: true, configuration: true };
  const trees = useRead("trees", interest, (read, signal) => api.trees.listTrees({ countRequests: true, read }, { signal }));
  return (
    <>
      <h1>Overview</h1>
      <ClusterLine />
      <Answer read={trees}>
        {(t) => (
          <>
            {t.trees.length ? (
              <div class="cards overview">
                {t.trees.map((tree) => (
                  <TreeCard key={tree.name} tree={tree} filtered={t.filtered} />
                ))}
              </div>
            ) : (
              <NoTree filtered={t.filtered} />
            )}
            {t.filtered && t.trees.length > 0 && <p class="quiet">Trees in which you may see nothing are not listed.</p>}
          </>
        )}
      </Answer>
    </>
  );
}

/** NoTree says why there is nothing to see, and what to do. */
function NoTree({ filtered }: { filtered: boolean }) {
  const who = useRead("who am I", { configuration: true }, (read, signal) => api.access.whoAmI({ read }, { signal }));
  if (!filtered) {
    return (
      <Empty>
        There is no tree yet. <code>quorate apply -f FILE</code> makes one.
      </Empty>
    );
  }
  if (!who.data) return null;
  if (!who.data.user && who.data.mode === AccessMode.GUARDED) {
    return <SignIn why="Trees of this cluster are shown to those who sign in." />;
  }
  return <Empty>You may see no tree. An administrator of a tree can give you the right usage.read.</Empty>;
}

function TreeCard({ tree, filtered }: { tree: TreeSummary; filtered: boolean }) {
  const [card, seen] = useSeen();
  const name = tree.name;
  return (
    <section class="card" ref={card} aria-label={`Tree ${name}`}>
      <h2>
        <a href={address("tree", { tree: name })}>
          <bdi>{name}</bdi>
        </a>
      </h2>
      <p class="node-facts">
        <WaitingCount tree={name} node="" count={tree.waitingRequests} since={tree.waitingSinceLedgerMs} />
        {tree.deniedRequests > 0n && (
          <a class="usage-none" href={address("node", { tree: name, tab: "events" })}>
            {String(tree.deniedRequests)} denied in ten minutes
          </a>
        )}
        {!filtered && tree.waitingRequests === 0n && tree.deniedRequests === 0n && (
          <span class="quiet">no request waits</span>
        )}
      </p>
      {seen && <Fullest tree={name} />}
    </section>
  );
}

/** How many nodes a card has. */
const most = 5;

/** Fullest lists the nodes with the largest share of a limit in use, with the resources that are limited or used. */
function Fullest({ tree }: { tree: string }) {
  const ask = { tree, subtree: true, fullestFirst: true, countWaiting: true, pageSize: most };
  const usage = useRead<GetUsageResponse>(`fullest ${tree}`, { tree, usage: true, queue: true }, (read, signal) =>
    api.trees.getUsage({ ...ask, read }, { signal }),
  );
  return (
    <Answer read={usage}>
      {(u) => (
        <ul class="plain-list">
          {u.nodes
            .filter((n) => n.waitingRequests > 0n || n.resources.some(matters))
            .map((n) => (
              <FullNode key={n.node} tree={tree} node={n} />
            ))}
        </ul>
      )}
    </Answer>
  );
}

function FullNode({ tree, node }: { tree: string; node: NodeUsage }) {
  return (
    <li>
      <div class="node-facts">
        <NodeLink tree={tree} node={node.node} />
        <NodeMarks node={node} />
        <WaitingMark tree={tree} node={node} />
      </div>
      {node.resources.filter(matters).map((r) => (
        <div key={r.resource} class="overview-usage">
          <bdi>{r.resource}</bdi>
          <UsageCell tree={tree} node={node.node} usage={r} />
        </div>
      ))}
    </li>
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
