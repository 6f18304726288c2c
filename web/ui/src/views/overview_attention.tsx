// What needs attention first: members, certificates, backups, memory, cordons, and limits that are exceeded.
import type { GetStatusResponse, ListMembersResponse } from "#gen/admin/cluster_pb";
import type { ReadInfo } from "#gen/common_pb";
import type { NodeCordon, NodeUsage, TreeSummary } from "#gen/tree_pb";
import type { ComponentChildren } from "preact";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { useRepeat } from "../api/repeat";
import { useRight } from "../api/rights";
import { Icon } from "../components/icon";
import { NodeLink } from "../components/names";
import { Instant, now } from "../components/time";
import { short } from "../format";
import { address } from "../router";
import { useCluster } from "./cluster";
import { backupDue, certificateDue, healthOf } from "./cluster_members";

const every = 5000;
const everyTree = 10_000;

/** In how many trees limits that are exceeded are looked for, and how many nodes of each are named. */
const mostTrees = 20;
const mostNodes = 5;

/** How many lines are shown. */
const mostLines = 8;

interface Line {
  key: string;
  loud: boolean;
  text: ComponentChildren;
}

/** Attention lists what a person should look at, the worst first; in one line that there is nothing. */
export function Attention({ trees }: { trees: TreeSummary[] }) {
  const may = useRight("cluster.read", [{ tree: "", node: "" }])?.allowed;
  const cluster = useHealth();
  const found = useFound(trees);
  const lines = [...(may ? clusterLines(cluster.status, cluster.health) : []), ...found].sort((a, b) => Number(b.loud) - Number(a.loud));
  return (
    <section class="attention" aria-label="Needs attention">
      {may && <HealthWord {...cluster} calm={!lines.length} />}
      {lines.length > 0 && (
        <ul class="plain-list">
          {lines.slice(0, mostLines).map((line) => (
            <li key={line.key} class={line.loud ? "attention-loud" : undefined}>
              <Icon name="alert" />
              <span>{line.text}</span>
            </li>
          ))}
          {lines.length > mostLines && <li class="quiet">and {lines.length - mostLines} more</li>}
        </ul>
      )}
    </section>
  );
}

interface ClusterHealth {
  status?: GetStatusResponse;
  health?: ListMembersResponse;
}

function useHealth(): ClusterHealth {
  const status = useCluster("status", (signal) => api.cluster.getStatus({}, { signal }));
  const health = useCluster("members", (signal) => api.cluster.listMembers({}, { signal }));
  useRepeat(() => [status, health].forEach((r) => r.again()), every);
  return { status: status.data, health: health.data };
}

/** HealthWord says in a line how the members are. It has the same place whatever it says. */
function HealthWord({ status, health, calm }: ClusterHealth & { calm: boolean }) {
  const well = status?.leaderId && !status.problem && !health?.problem;
  return (
    <p class="attention-health" role="status">
      {status && (
        <>
          <span class={`pill pill-${well ? "good" : "bad"}`}>
            {well ? "Healthy" : status.leaderId ? "Needs attention" : "No leader"}
          </span>{" "}
          {status.leaderId && (
            <>
              Leader <bdi>{status.leaderId}</bdi>
            </>
          )}
          {status.leaderId && health?.voters ? `, ${health.healthyVoters} of ${health.voters} voters healthy. ` : " "}
          {calm && "Nothing needs attention. "}
        </>
      )}
      <a href={address("cluster")}>Cluster</a>
    </p>
  );
}

function clusterLines(status?: GetStatusResponse, health?: ListMembersResponse): Line[] {
  const lines: Line[] = [];
  const add = (key: string, loud: boolean, text: ComponentChildren) => lines.push({ key, loud, text });
  const problem = status?.problem || health?.problem;
  if (problem) add("problem", true, problem);
  // Without a leader no one tells how the members are.
  for (const row of status?.leaderId ? (health?.members ?? []) : []) {
    const { kind, word } = healthOf(row);
    if (kind === "bad") add(`member ${row.id}`, true, <>Member <bdi>{row.id}</bdi>: {word}</>);
    const certificate = certificateDue(row, now.value);
    if (certificate.late) add(`certificate ${row.id}`, true, <>Certificate of <bdi>{row.id}</bdi>: {certificate.text}</>);
    const backup = backupDue(row, now.value);
    if (backup.late) add(`backup ${row.id}`, false, <>Backups of <bdi>{row.id}</bdi>: {backup.text}</>);
  }
  const share = status?.ledgerBytesLimit ? Number(status.ledgerBytes) / Number(status.ledgerBytesLimit) : 0;
  if (share >= 0.9) add("ledger", true, `The ledger has ${Math.floor(share * 100)} % of the memory that it may have`);
  return lines;
}

interface Found {
  cordons: NodeCordon[];
  over: { tree: string; node: NodeUsage }[];
  read?: ReadInfo;
}

/** useFound are nodes that are over a limit, and cordoned nodes. */
function useFound(trees: TreeSummary[]): Line[] {
  const names = trees.map((t) => t.name).slice(0, mostTrees);
  const read = useRead<Found>(`attention ${names.join(" ")}`, { configuration: true }, async (fresh, signal) => {
    const overIn = async (tree: string) => {
      const ask = { tree, subtree: true, atLeastPercent: 101, fullestFirst: true, pageSize: mostNodes, read: fresh };
      const { nodes } = await api.trees.getUsage(ask, { signal });
      return nodes.map((node) => ({ tree, node }));
    };
    const [cordons, over] = await Promise.all([
      api.cordons.listCordons({ pageSize: mostLines, read: fresh }, { signal }),
      Promise.all(names.map(overIn)),
    ]);
    return { cordons: cordons.cordons, over: over.flat(), read: cordons.read };
  });
  useRepeat(read.again, everyTree);
  return [...(read.data?.over ?? []).flatMap(overLines), ...(read.data?.cordons ?? []).map(cordonLine)];
}

function overLines({ tree, node }: Found["over"][number]): Line[] {
  return node.resources
    .filter((u) => u.over > 0n && u.effective?.value.case !== "advisory")
    .map((u) => ({
      key: `over ${tree} ${node.node} ${u.resource}`,
      loud: true,
      text: (
        <>
          <NodeLink tree={tree} node={node.node} /> is over its limit of <bdi>{u.resource}</bdi> by {short(u.over, u.unit)}
        </>
      ),
    }));
}

function cordonLine(c: NodeCordon): Line {
  return {
    key: `cordon ${c.tree} ${c.node}`,
    loud: false,
    text: (
      <>
        <NodeLink tree={c.tree} node={c.node} /> is {c.drain ? (c.drained ? "drained" : "draining") : "cordoned"}
        {c.actor && (
          <>
            {" "}
            by <bdi>{c.actor}</bdi>
          </>
        )}
        {c.reason && (
          <>
            : <bdi>{c.reason}</bdi>
          </>
        )}{" "}
        <span class="quiet">
          <Instant at={c.beganAt} />
        </span>
      </>
    ),
  };
}
