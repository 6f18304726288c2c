// Members, roles, health, the log, levels, comparisons of states, certificates and backups.
import { AccessMode } from "#gen/access_pb";
import type { GetStatusResponse, ListMembersResponse } from "#gen/admin/cluster_pb";
import type { ReadInfo } from "#gen/common_pb";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Unit } from "#gen/tree_pb";
import type { GetLevelResponse } from "#gen/admin/upkeep_pb";
import type { ComponentChildren } from "preact";
import { api } from "../api/clients";
import { useRead, type Read } from "../api/read";
import { useRepeat } from "../api/repeat";
import { Answer, FailureNote } from "../components/states";
import { Instant } from "../components/time";
import { short, span } from "../format";
import { ClusterActions } from "./cluster_actions";
import { DigestTable, MemberTable } from "./cluster_tables";

const every = 5000;

/** Cluster shows the nodes and what they say of each other. */
export function Cluster() {
  const status = useCluster("status", (signal) => api.cluster.getStatus({}, { signal }));
  const health = useCluster("members", (signal) => api.cluster.listMembers({}, { signal }));
  const level = useCluster("level", (signal) => api.cluster.getLevel({}, { signal }));
  const again = () => [status, health, level].forEach((r) => r.again());
  useRepeat(again, every);
  return (
    <>
      <h1>Cluster</h1>
      <Answer read={status}>
        {(s) => (
          <>
            <HealthLine status={s} health={health.data} />
            {level.failure && <FailureNote failure={level.failure} />}
            <Facts status={s} level={level.data} />
            {health.data && health.data.members.length > 0 && (
              <>
                <MemberTable status={s} members={health.data.members} again={again} />
                <DigestTable members={health.data.members} />
              </>
            )}
            {level.data && <ClusterActions level={level.data} again={again} />}
          </>
        )}
      </Answer>
    </>
  );
}

/** useCluster reads what a node tells of itself, which has no place in the log. */
export function useCluster<T extends object>(key: string, ask: (signal: AbortSignal) => Promise<T>): Read<T> {
  return useRead<T & { read?: ReadInfo }>(`cluster ${key}`, { members: true }, (_, signal) => ask(signal));
}

/** HealthLine is what an operator wants to know first. */
function HealthLine({ status, health }: { status: GetStatusResponse; health?: ListMembersResponse }) {
  const problem = status.problem || health?.problem;
  if (problem) {
    return (
      <div class="note note-problem" role="status">
        <p>
          <strong>{status.leaderId ? "Needs attention" : "No leader"}:</strong> {problem}
        </p>
      </div>
    );
  }
  if (!health?.voters) return <p class="cluster-line">Leader {status.leaderId || "unknown"}.</p>;
  return (
    <p class="cluster-line" role="status">
      <strong class="word-good">✓ Healthy.</strong> {health.healthyVoters} of {health.voters} voters are healthy; the cluster
      survives the loss of {health.failureTolerance} more.
    </p>
  );
}

const modes = {
  [AccessMode.UNSPECIFIED]: "unknown",
  [AccessMode.OPEN]: "open: every caller may do everything",
  [AccessMode.WATCHING]: "watching: every caller may do everything, and what guarded would refuse is counted",
  [AccessMode.GUARDED]: "guarded: what no binding gives is refused",
};

function Facts({ status: s, level }: { status: GetStatusResponse; level?: GetLevelResponse }) {
  const me = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  return (
    <dl class="cluster-facts">
      <Fact name="Cluster">
        <bdi>{s.clusterName}</bdi>
      </Fact>
      <Fact name="Answered by">
        <bdi>{s.servedBy}</bdi>
      </Fact>
      <Fact name="Leader">{s.leaderId ? <bdi>{s.leaderId}</bdi> : "none"}</Fact>
      {s.member && <LogFacts status={s} />}
      {level && <Fact name="Feature level">{levelText(level)}</Fact>}
      {me.data && <Fact name="Access">{modes[me.data.mode]}</Fact>}
      {me.data && (
        <Fact name="You are">{me.data.user ? <bdi>{me.data.user}</bdi> : "not signed in: no credential was presented"}</Fact>
      )}
    </dl>
  );
}

function LogFacts({ status: s }: { status: GetStatusResponse }) {
  const share = s.ledgerBytesLimit ? Number(s.ledgerBytes) / Number(s.ledgerBytesLimit) : 0;
  return (
    <>
      <Fact name="Term">{String(s.term)}</Fact>
      <Fact name="Committed index">{String(s.commitIndex)}</Fact>
      <Fact name="Applied index">{String(s.appliedIndex)}</Fact>
      <Fact name="Revision">{String(s.revision)}</Fact>
      <Fact name="Allocations">{String(s.heldAllocations)}</Fact>
      <Fact name="Ledger size">
        {short(s.ledgerBytes - (s.ledgerBytes % 1024n), Unit.BYTES)} of {short(s.ledgerBytesLimit, Unit.BYTES)}
        {share >= 0.9 && <strong class="word-bad"> nearly full</strong>}
        <span class="bar" aria-hidden="true">
          <span class="bar-used" style={{ width: `${Math.min(1, share) * 100}%` }} />
        </span>
      </Fact>
      <Fact name="Ledger time">{span(s.ledgerTimeMs)} since the cluster began</Fact>
      <Fact name="Civil time">
        {s.civilTimeMs ? <Instant at={timestampFromMs(Number(s.civilTimeMs))} exact /> : "not agreed on yet"}
      </Fact>
    </>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function levelText(level: GetLevelResponse): string {
  if (level.possible > level.level) return `${level.level}; all members understand ${level.possible}`;
  if (level.possible === 0) return `${level.level}; not all members have said what they understand`;
  return `${level.level}, the newest that all members understand`;
}
