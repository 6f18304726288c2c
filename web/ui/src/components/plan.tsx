// What a change of the configuration would do, as the server says in a dry run.
import type { ComponentChildren } from "preact";
import { ChangeKind, type Change } from "#gen/revision_pb";
import type { Overuse } from "#gen/scheduled_limit_pb";
import type { AffectedRequests, ConfigurationResult, RoomChange } from "#gen/tree_pb";
import { amountText } from "../api/units";
import { defaultNamespace, nameKey } from "../requests/name";
import { AllocationLink, NodeLink } from "./names";

/** Plan shows the differences, and their consequences. */
export function Plan({ result }: { result: ConfigurationResult }) {
  if (!result.changes.length) return <p>Nothing would change.</p>;
  return (
    <div class="plan">
      <Changes changes={result.changes} />
      <Part title="Over a limit afterwards" show={result.overuses.length > 0}>
        {result.overuses.map((o) => (
          <OveruseLine key={`${o.tree} ${o.node} ${o.resource} ${o.holder}`} over={o} />
        ))}
      </Part>
      <Part title="Room that begins or ends" show={result.rooms.length > 0}>
        {result.rooms.map((r) => (
          <RoomLine key={`${r.tree} ${r.node} ${r.resource}`} room={r} />
        ))}
      </Part>
      <Affected title="Waiting requests that would be granted" list={result.queue?.granted} />
      <Affected title="Allocations that would be preempted" list={result.queue?.preempted} />
      <Affected title="Leases that would be revoked" list={result.queue?.revoked} />
      <Affected title="Waiting requests that would be cancelled" list={result.queue?.cancelled} />
      <Affected title="Waiting requests that could not fit any more and would step aside" list={result.queue?.setAside} />
      <Part title="Requests that were denied lately and would be granted" show={result.admitted.length > 0}>
        {result.admitted.map((r) => (
          <li key={nameKey(r)}>
            <bdi>{r.id}</bdi>
            {r.namespace !== defaultNamespace && <> of <bdi>{r.namespace}</bdi></>}
          </li>
        ))}
      </Part>
      {result.queueNotEvaluated && (
        <p class="quiet">The cluster holds too much to say what would become of waiting requests.</p>
      )}
    </div>
  );
}

function Part({ title, show, children }: { title: string; show: boolean; children: ComponentChildren }) {
  return show ? (
    <section>
      <h3>{title}</h3>
      <ul class="plain-list">{children}</ul>
    </section>
  ) : null;
}

const signs = {
  [ChangeKind.UNSPECIFIED]: "",
  [ChangeKind.ADDED]: "+",
  [ChangeKind.CHANGED]: "~",
  [ChangeKind.REMOVED]: "-",
};
const words = {
  [ChangeKind.UNSPECIFIED]: "",
  [ChangeKind.ADDED]: "added",
  [ChangeKind.CHANGED]: "changed",
  [ChangeKind.REMOVED]: "removed",
};

/** Changes lists differences between two configurations. */
export function Changes({ changes }: { changes: Change[] }) {
  return (
    <ul class="plain-list changes">
      {changes.map((c) => (
        <li key={`${c.tree} ${c.node} ${c.field}`} class={`change-${words[c.kind]}`}>
          <span class="sign" aria-hidden="true">
            {signs[c.kind]}
          </span>
          <span class="hidden">{words[c.kind]} </span>
          {c.tree && <NodeLink tree={c.tree} node={c.node} />} <bdi>{c.field}</bdi>
          {(c.before || c.after) && ": "}
          {c.before && <bdi>{c.before}</bdi>}
          {c.before && c.after && " → "}
          {c.after && <bdi>{c.after}</bdi>}
        </li>
      ))}
    </ul>
  );
}

function OveruseLine({ over }: { over: Overuse }) {
  const amount = (n: bigint) => (over.resource ? amountText(over.tree, over.resource, n) : String(n));
  return (
    <li>
      <NodeLink tree={over.tree} node={over.node} />
      {over.holder && (
        <>
          {" "}
          <bdi>{over.holder}</bdi>
        </>
      )}{" "}
      {over.resource || "applications"}: {amount(over.used)} of {amount(over.limit)}
      {over.isAdvisory && ", advisory"}
    </li>
  );
}

function RoomLine({ room }: { room: RoomChange }) {
  const amount = (n?: bigint) => (n === undefined ? "unlimited" : amountText(room.tree, room.resource, n));
  return (
    <li>
      <NodeLink tree={room.tree} node={room.node} /> {room.resource}: {amount(room.before)} → {amount(room.after)} free
    </li>
  );
}

function Affected({ title, list }: { title: string; list?: AffectedRequests }) {
  if (!list || list.total === 0n) return null;
  const rest = Number(list.total) - list.requests.length;
  return (
    <Part title={`${title}: ${list.total}`} show>
      {list.requests.map((r) => (
        <li key={nameKey(r)}>
          <AllocationLink of={r} />
          {r.by && (
            <>
              {" "}
              for <AllocationLink of={r.by} beside={r.namespace} />
            </>
          )}
        </li>
      ))}
      {rest > 0 && <li>and {rest} more</li>}
    </Part>
  );
}
