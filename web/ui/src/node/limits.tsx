// The limits of a node: what is used, what is set, what is in force, and who set it.
import { api } from "../api/clients";
import { useRead, type Read } from "../api/read";
import type { ListRevisionsResponse } from "#gen/admin/configuration_pb";
import type { NodeUsage, ResourceUsage } from "#gen/tree_pb";
import { Empty, FailureNote } from "../components/states";
import { Table, type Column } from "../components/table";
import { Instant } from "../components/time";
import { limitText, short } from "../format";
import { address } from "../router";
import { UsageCell } from "../tree/cell";
import { LimitDialogButton } from "./changes";
import { lastChanges, type LastChange } from "./last_change";
import { ScheduledLimits } from "./scheduled";

/** Limits shows the resources of a node. */
export function Limits({ tree, usage }: { tree: string; usage: NodeUsage }) {
  const revisions = useRevisions(tree, usage.node);
  const above = useAbove(tree, usage.node);
  const last = lastChanges(revisions.data?.revisions ?? []);
  const columns: Column<ResourceUsage>[] = [
    { title: "Resource", cell: (u) => <bdi>{u.resource}</bdi> },
    { title: "Used and free", cell: (u) => <div class="node-usage"><UsageCell tree={tree} node={usage.node} usage={u} nodes={above} /></div> },
    { title: "Held here", cell: (u) => short(u.own, u.unit), number: true },
    { title: "Below", cell: (u) => short(u.subtree - u.own, u.unit), number: true },
    { title: "Limit set", cell: (u) => limitText(u.limit, u.unit), number: true },
    { title: "In force", cell: (u) => <InForce usage={u} />, number: true },
    { title: "Last changed", cell: (u) => <SetBy change={last.get(`limit ${u.resource}`)} /> },
  ];
  return (
    <>
      <Table caption="Limits and use" columns={columns} rows={usage.resources} keyOf={(u) => u.resource} />
      <LimitDialogButton tree={tree} usage={usage} />
      <ScheduledLimits tree={tree} node={usage.node} />
      <NodeHistory revisions={revisions} />
    </>
  );
}

/** useAbove are the nodes above a node, as far as the user may see them: they say why less is free than a limit leaves. */
function useAbove(tree: string, node: string): NodeUsage[] {
  const paths = node ? ["", ...node.split("/").map((_, i, parts) => parts.slice(0, i).join("/")).slice(1)] : [];
  const read = useRead(`above ${tree} ${node}`, { tree, node: "", usage: true }, async (fresh, signal) => {
    const asked = paths.map((path) => api.trees.getUsage({ tree, node: path, read: fresh }, { signal }));
    const answers = await Promise.all(asked);
    return { nodes: answers.flatMap((a) => a.nodes), read: answers[0]?.read };
  });
  return read.data?.nodes ?? [];
}

function useRevisions(tree: string, node: string): Read<ListRevisionsResponse> {
  return useRead(`revisions of ${tree} ${node}`, { configuration: true }, (read, signal) =>
    api.configuration.listRevisions({ tree, node, pageSize: 100, read }, { signal }),
  );
}

function InForce({ usage: u }: { usage: ResourceUsage }) {
  return (
    <>
      {limitText(u.effective, u.unit)}
      {u.limitChangesAt && (
        <span class="quiet">
          {" "}
          until <Instant at={u.limitChangesAt} exact />
        </span>
      )}
    </>
  );
}

function SetBy({ change }: { change?: LastChange }) {
  if (!change) return <span class="quiet">–</span>;
  return (
    <>
      <a href={address("history", { revision: String(change.revision) })}>revision {String(change.revision)}</a>{" "}
      <Instant at={change.appliedAt} />
      {change.actor && (
        <>
          {" "}
          by <bdi>{change.actor}</bdi>
        </>
      )}
      {change.reason && (
        <>
          : <bdi>{change.reason}</bdi>
        </>
      )}
    </>
  );
}

/** NodeHistory lists the changes of the node itself, newest first. */
function NodeHistory({ revisions }: { revisions: Read<ListRevisionsResponse> }) {
  const rows = (revisions.data?.revisions ?? []).flatMap((r) => r.changes.map((change, i) => ({ r, change, key: `${r.revision} ${i}` })));
  return (
    <section>
      <h2>Changes of this node</h2>
      {revisions.failure && <FailureNote failure={revisions.failure} again={revisions.again} />}
      {revisions.data && !rows.length && <Empty>The history has no change of this node.</Empty>}
      {rows.length > 0 && (
        <Table
          caption="Changes of this node"
          rows={rows}
          keyOf={(row) => row.key}
          columns={[
            { title: "When", cell: ({ r }) => <Instant at={r.appliedAt} /> },
            {
              title: "What",
              cell: ({ change: c }) => (
                <bdi>
                  {c.field}
                  {c.before || c.after ? `: ${[c.before, c.after].filter(Boolean).join(" → ")}` : ""}
                </bdi>
              ),
            },
            { title: "Who", cell: ({ r }) => <bdi>{r.actor}</bdi> },
            { title: "Why", cell: ({ r }) => <bdi>{r.reason}</bdi> },
            {
              title: "Revision",
              cell: ({ r }) => <a href={address("history", { revision: String(r.revision) })}>{String(r.revision)}</a>,
              number: true,
            },
          ]}
        />
      )}
    </section>
  );
}
