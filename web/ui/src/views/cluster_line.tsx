// The health of the cluster in one line.
import type { GetStatusResponse, ListMembersResponse } from "#gen/cluster_pb";
import { api } from "../api/clients";
import { useRepeat } from "../api/repeat";
import { address } from "../router";
import { useCluster } from "./cluster";

const every = 5000;

/**
 * ClusterLine says whether a leader and the voters are well, and leads to the members. It has the same place whatever it
 * says, so that nothing below it jumps; the banner tells when the server does not answer.
 */
export function ClusterLine() {
  const status = useCluster("status", (signal) => api.cluster.getStatus({}, { signal }));
  const health = useCluster("members", (signal) => api.cluster.listMembers({}, { signal }));
  useRepeat(() => [status, health].forEach((r) => r.again()), every);
  return (
    <p class="overview-health" role="status">
      {status.data && <Health status={status.data} health={health.data} />} <a href={address("cluster")}>Cluster</a>
    </p>
  );
}

function Health({ status, health }: { status: GetStatusResponse; health?: ListMembersResponse }) {
  const problem = status.problem || health?.problem;
  if (problem || !status.leaderId) {
    return (
      <span>
        <strong class="usage-none">{status.leaderId ? "Needs attention." : "No leader."}</strong> {problem}
      </span>
    );
  }
  if (!health?.voters) return <span>The leader is {status.leaderId}.</span>;
  return (
    <span>
      <strong class="word-good">✓ Healthy.</strong> Leader <bdi>{status.leaderId}</bdi>, {health.healthyVoters} of{" "}
      {health.voters} voters healthy.
    </span>
  );
}
