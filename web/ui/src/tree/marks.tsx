// What stands beside the bars of a node: what waits, cordons, and numbers of applications.
import type { NodeUsage } from "#gen/tree_pb";
import { Ago } from "../components/time";
import { boundOf } from "../node/limit_text";
import { address } from "../router";

/** WaitingMark says how many requests wait at a node and below it, and for how long the oldest does. */
export function WaitingMark({ tree, node, inert }: { tree: string; node: NodeUsage; inert?: boolean }) {
  return <WaitingCount tree={tree} node={node.node} count={node.waitingRequests} since={node.waitingSinceLedgerMs} inert={inert} />;
}

interface WaitingProps {
  tree: string;
  node: string;
  count: bigint;
  since: bigint;
  /** Not reached by the tabulator, because the keys of a grid lead there. */
  inert?: boolean;
}

/** WaitingCount leads to the requests that wait. */
export function WaitingCount({ tree, node, count, since, inert }: WaitingProps) {
  if (count === 0n) return null;
  return (
    <a class="pill pill-info" href={address("queue", { tree, node })} tabIndex={inert ? -1 : undefined}>
      {String(count)} waiting <span class="waiting-since">· oldest <Ago ledgerMs={since} /></span>
    </a>
  );
}

/** cordonWords says what the cordon of a node does. */
export function cordonWords(node: NodeUsage): string {
  const { cordon } = node;
  if (!cordon) return "";
  const above = cordon.node !== node.node;
  const word = cordon.drain ? (cordon.drained ? "drained" : "draining") : "cordoned";
  return `${word}${above ? " with a node above" : ""}`;
}

/** NodeMarks are the marks of a node itself. */
export function NodeMarks({ node }: { node: NodeUsage }) {
  const words = cordonWords(node);
  const most = boundOf(node.maxApplications);
  if (!words && most === undefined) return null;
  return (
    <>
      {words && (
        <>
          <span class="pill pill-nearly">{words}</span>
          {node.cordon!.reason && (
            <bdi class="quiet mark-reason">{node.cordon!.reason}</bdi>
          )}
        </>
      )}
      {most !== undefined && (
        <span class="quiet">
          {String(node.runningApplications)} of {String(most)} applications
        </span>
      )}
    </>
  );
}
