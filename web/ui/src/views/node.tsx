// A node: its limits and who set them, what is held there, who waits, and what happened.
import type { GetUsageResponse, NodeUsage } from "#gen/tree_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { Answer, Empty } from "../components/states";
import { Tabs } from "../components/tabs";
import { Activity } from "../node/activity";
import { Events } from "../node/events";
import { Held } from "../node/held";
import { CordonButtons, CordonNote } from "../node/cordon";
import { boundOf } from "../node/limit_text";
import { Limits } from "../node/limits";
import { Applications, Groups, Users } from "../node/principals";
import { Waiting } from "../node/waiting";
import { WhoCan } from "../node/who_can";
import { address, route } from "../router";
import { WaitingMark } from "../tree/marks";
import { lastName } from "../tree/rows";

/** NodePage is the view of one node. */
export function NodePage() {
  const { query } = route.value;
  const tree = query.get("tree") ?? "";
  const node = query.get("node") ?? "";
  if (!tree) {
    return (
      <>
        <h1>Node</h1>
        <Empty>
          The address names no node. <a href={address("tree")}>Choose one in a tree</a>.
        </Empty>
      </>
    );
  }
  return <OneNode key={`${tree}:${node}`} tree={tree} node={node} />;
}

function OneNode({ tree, node }: { tree: string; node: string }) {
  const interest = { tree, node, usage: true, queue: true, configuration: true };
  const read = useRead<GetUsageResponse>(`node ${tree} ${node}`, interest, (fresh, signal) =>
    api.trees.getUsage({ tree, node, countWaiting: true, read: fresh }, { signal }),
  );
  return (
    <>
      <h1>
        <bdi>{lastName(tree, node)}</bdi>
      </h1>
      <Answer read={read}>{({ nodes }) => nodes[0] && <Shown tree={tree} usage={nodes[0]} />}</Answer>
    </>
  );
}

function Shown({ tree, usage }: { tree: string; usage: NodeUsage }) {
  const at = { tree, node: usage.node };
  const most = boundOf(usage.maxApplications);
  return (
    <>
      <p class="node-facts">
        <span>
          policy <bdi>{usage.policy}</bdi>
        </span>
        {usage.childCount > 0n && (
          <a href={address("tree", at)}>
            {String(usage.childCount)} {usage.childCount === 1n ? "node" : "nodes"} below
          </a>
        )}
        {most !== undefined && (
          <span>
            {String(usage.runningApplications)} of {String(most)} applications
          </span>
        )}
        <WaitingMark tree={tree} node={usage} />
      </p>
      <CordonNote tree={tree} usage={usage} />
      <CordonButtons tree={tree} usage={usage} />
      <Tabs
        label="About this node"
        tabs={[
          { name: "limits", title: "Limits", content: () => <Limits tree={tree} usage={usage} /> },
          { name: "held", title: "Held", content: () => <Held {...at} /> },
          { name: "waiting", title: "Waiting", content: () => <Waiting {...at} /> },
          { name: "users", title: "Users", content: () => <Users {...at} /> },
          { name: "groups", title: "Groups", content: () => <Groups {...at} /> },
          { name: "applications", title: "Applications", content: () => <Applications {...at} /> },
          { name: "activity", title: "Activity", content: () => <Activity {...at} /> },
          { name: "events", title: "Events", content: () => <Events {...at} /> },
          { name: "who-can", title: "Who can", content: () => <WhoCan {...at} /> },
        ]}
      />
    </>
  );
}
