// My work: the nodes of the user, what the user holds, and what waits for the user.
import type { Allocation, WaitingRequest } from "#gen/allocation_pb";
import type { ReadInfo } from "#gen/common_pb";
import type { NodeUsage } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead, type Fresh } from "../api/read";
import { useRepeat } from "../api/repeat";
import { useRight } from "../api/rights";
import { Claims } from "../components/claims";
import { AllocationLink, NodeLink } from "../components/names";
import { SignIn } from "../components/sign_in";
import { Answer, Empty, Skeleton } from "../components/states";
import { Table, type Column } from "../components/table";
import { Ago, Remaining } from "../components/time";
import { natural, nodeName } from "../format";
import { nameKey } from "../requests/name";
import { address } from "../router";
import { UsageCell } from "../tree/cell";
import { NodeMarks, WaitingMark } from "../tree/marks";
import { matters } from "../tree/words";
import { QueueTable } from "./queue_table";

/** How many allocations and requests are read, and how many nodes are shown. */
const mostRows = 100;
const mostNodes = 12;

/** Renewals are no changes that the server tells of. */
const renewalsEvery = 5000;

interface Place {
  tree: string;
  node: string;
}

interface Work {
  held: Allocation[];
  waiting: WaitingRequest[];
  nodes: { tree: string; node: NodeUsage }[];
  read?: ReadInfo;
}

/** Mine is the page of the user who is signed in. */
export function Mine() {
  const who = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  return (
    <>
      <h1>My work</h1>
      {who.loading && <Skeleton />}
      {who.data && (who.data.user ? <WorkOf user={who.data.user} /> : <SignIn why="Sign in to see what you hold and what waits for you." />)}
    </>
  );
}

function WorkOf({ user }: { user: string }) {
  const interest = { usage: true, queue: true, configuration: true };
  const read = useRead<Work>(`work of ${user}`, interest, (fresh, signal) => readWork(user, fresh, signal));
  useRepeat(read.again, renewalsEvery);
  return (
    <Answer read={read}>
      {({ held, waiting, nodes }) => (
        <>
          <section>
            <h2>My nodes</h2>
            {nodes.length ? (
              <div class="my-nodes">
                {nodes.map(({ tree, node }) => (
                  <NodeCard key={nodeName(tree, node.node)} tree={tree} node={node} />
                ))}
              </div>
            ) : (
              <Empty>You hold nothing, and no node is shared with you alone.</Empty>
            )}
          </section>
          <section>
            <h2>My waiting requests</h2>
            {waiting.length ? (
              <QueueTable caption="My waiting requests" requests={waiting} certain />
            ) : (
              <Empty>None of your requests waits.</Empty>
            )}
          </section>
          <section>
            <h2>What I hold</h2>
            {held.length ? (
              <Table caption="What I hold" columns={columnsFor(user)} rows={held} keyOf={nameKey} />
            ) : (
              <Empty>You hold nothing now.</Empty>
            )}
          </section>
        </>
      )}
    </Answer>
  );
}

/** columnsFor names no namespace that is the user's own. */
const columnsFor = (user: string): Column<Allocation>[] => [
  { title: "Allocation", cell: (a) => <AllocationLink of={a} beside={user} /> },
  { title: "Holds", cell: (a) => <Claims claims={a.claims} /> },
  { title: "For", cell: (a) => <Ago ledgerMs={a.grantedLedgerMs} /> },
  { title: "Ends in", cell: (a) => <Ends of={a} /> },
];

function Ends({ of: a }: { of: Allocation }) {
  const end = a.expiresLedgerMs || a.reservedUntilLedgerMs || a.endsLedgerMs;
  if (!end) return <span class="quiet">when released</span>;
  return (
    <>
      <Remaining ledgerMs={end} /> {a.revokedBy && <span class="pill pill-bad">revoked</span>}
      {a.ttlMs > 0n && !a.revokedBy && <span class="quiet">unless renewed</span>}
    </>
  );
}

function NodeCard({ tree, node }: { tree: string; node: NodeUsage }) {
  const at = { tree, node: node.node };
  const ask = useRight("limits.request", [at]);
  return (
    <section class="card" aria-label={nodeName(tree, node.node)}>
      <h3 class="node-facts">
        <NodeLink {...at} />
        <NodeMarks node={node} />
        <WaitingMark tree={tree} node={node} />
      </h3>
      {node.resources.filter(matters).map((u) => (
        <div key={u.resource} class="my-usage overview-usage">
          <bdi>{u.resource}</bdi>
          <UsageCell {...at} usage={u} />
        </div>
      ))}
      <p class="actions">
        <a class="button" href={address("what-if", { at: nodeName(tree, node.node) })}>
          Request capacity…
        </a>
        {ask?.allowed && (
          <a class="button" href={address("requests", at)}>
            Ask for more…
          </a>
        )}
      </p>
    </section>
  );
}

/** readWork reads what a user holds or has made, what waits, and the nodes of both. */
async function readWork(user: string, read: Fresh, signal: AbortSignal): Promise<Work> {
  const page = { pageSize: mostRows, read };
  const [forUser, byUser, waiting, trees] = await Promise.all([
    api.allocations.listAllocations({ ...page, user }, { signal }),
    api.allocations.listAllocations({ ...page, owner: user }, { signal }),
    api.allocations.listWaiting({ ...page, owner: user }, { signal }),
    api.trees.listTrees({ read }, { signal }),
  ]);
  const held = [...new Map([...forUser.allocations, ...byUser.allocations].map((a) => [nameKey(a), a])).values()];
  const claimed = [...held, ...waiting.requests.map((r) => r.allocation!)].flatMap((a) => a.claims);
  const places = new Map(claimed.map(({ tree, node }) => [nodeName(tree, node), { tree, node }]));
  const own = trees.filtered ? await Promise.all(trees.trees.map((t) => sharedNodes(t.name, read, signal))) : [];
  for (const place of own.flat()) places.set(nodeName(place.tree, place.node), place);
  const names = [...places.keys()].sort(natural).slice(0, mostNodes);
  const usages = names.map(async (name) => {
    const { tree, node } = places.get(name)!;
    const answer = await api.trees.getUsage({ tree, node, countWaiting: true, read }, { signal });
    return answer.nodes.map((usage) => ({ tree, node: usage }));
  });
  const nodes = (await Promise.allSettled(usages)).flatMap((u) => (u.status === "fulfilled" ? u.value : []));
  return { held, waiting: waiting.requests, nodes: nodes.filter((n) => n.node.resources.length), read: trees.read };
}

/** The most questions of one call. */
const mostQuestions = 100;

/** sharedNodes are the highest nodes of a tree at which the user has the right to read the use. */
async function sharedNodes(tree: string, read: Fresh, signal: AbortSignal): Promise<Place[]> {
  const { nodes } = await api.trees.getUsage({ tree, subtree: true, pageSize: mostQuestions, read }, { signal });
  const seen = nodes.filter((n) => n.resources.length).map((n) => n.node);
  if (!seen.length) return [];
  const questions = seen.map((node) => ({ verb: "usage.read", tree, node }));
  const { allowed } = await api.identity.canI({ questions, read }, { signal });
  const own = seen.filter((_, i) => allowed[i]);
  const isBelow = (node: string) => own.some((above) => node !== above && (above === "" || node.startsWith(`${above}/`)));
  return own.filter((node) => !isBelow(node)).map((node) => ({ tree, node }));
}
