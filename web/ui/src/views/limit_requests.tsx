// Requests for other limits: who asks for what, and what was decided.
import { LimitRequestState, type LimitRequest } from "#gen/v1beta1/limit_request_pb";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { usePages } from "../api/pages";
import { useRead } from "../api/read";
import { unitOf } from "../api/units";
import { filter } from "../components/filters";
import { NodeLink } from "../components/names";
import { TreePicker } from "../components/pickers";
import { PagedTable, type Column } from "../components/table";
import { Instant } from "../components/time";
import { limitText } from "../format";
import { setQuery } from "../router";
import { AskButton } from "./limit_request_form";
import { Decide } from "./limit_request_decide";

const states: [string, LimitRequestState, string][] = [
  ["open", LimitRequestState.OPEN, "open"],
  ["applied", LimitRequestState.APPLIED, "applied"],
  ["rejected", LimitRequestState.REJECTED, "rejected"],
  ["withdrawn", LimitRequestState.WITHDRAWN, "withdrawn"],
  ["stale", LimitRequestState.STALE, "stale"],
  ["expired", LimitRequestState.EXPIRED, "expired"],
];

/** LimitRequests lists the requests that the user made or may decide. */
export function LimitRequests() {
  const tree = filter("tree");
  const [made, setMade] = useState(0);
  return (
    <>
      <h1>Limit requests</h1>
      <form class="filters" onSubmit={(e) => e.preventDefault()} aria-label="Requests">
        <TreePicker value={tree} change={(name) => setQuery({ tree: name })} all="All trees" />
        <label>
          State
          <select value={filter("state")} onChange={(e) => setQuery({ state: e.currentTarget.value })}>
            <option value="">All</option>
            {states.map(([name]) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {offersChanges && <AskButton tree={tree} done={() => setMade(made + 1)} />}
      </form>
      <List key={made} tree={tree} />
    </>
  );
}

function List({ tree }: { tree: string }) {
  const state = states.find(([name]) => name === filter("state"))?.[1] ?? LimitRequestState.UNSPECIFIED;
  const pages = usePages<LimitRequest>(`limit requests ${tree} ${state}`, { configuration: true, limitRequests: true }, async (read, pageToken, signal) => {
    const asked = { pageToken, state, tree, read };
    const page = await api.limitRequests.listRequests(asked, { signal });
    return { rows: page.requests, next: page.nextPageToken, read: page.read };
  });
  const me = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  const [columns] = useState(() => columnsFor());
  const shown: Column<LimitRequest>[] = offersChanges
    ? [...columns, { title: "Decide", cell: (r) => <Decide request={r} user={me.data?.user ?? ""} again={pages.again} /> }]
    : columns;
  return (
    <PagedTable
      caption="Requests for limits"
      columns={shown}
      pages={pages}
      keyOf={(r) => String(r.id)}
      empty="There is no such request that you made or may decide."
    />
  );
}

function columnsFor(): Column<LimitRequest>[] {
  return [
    { title: "Id", cell: (r) => String(r.id), number: true },
    { title: "Node", cell: (r) => <NodeLink tree={r.tree} node={r.node} /> },
    { title: "Limits", cell: (r) => <Limits request={r} /> },
    { title: "Asked by", cell: (r) => <bdi>{r.asker}</bdi> },
    { title: "Reason", cell: (r) => <bdi>{r.reason}</bdi> },
    { title: "Asked", cell: (r) => <Instant at={r.madeAt} /> },
    { title: "State", cell: (r) => <State request={r} /> },
  ];
}

/** Limits are the limits that are asked for, and the present ones. */
export function Limits({ request: r }: { request: LimitRequest }) {
  const tree = r.tree;
  const open = r.state === LimitRequestState.OPEN;
  return (
    <ul class="plain-list">
      {Object.keys(r.limits)
        .sort()
        .map((name) => (
          <li key={name}>
            {name}: {open && `${limitText(r.present[name], unitOf(tree, name))} → `}
            {limitText(r.limits[name], unitOf(tree, name))}
          </li>
        ))}
    </ul>
  );
}

function State({ request: r }: { request: LimitRequest }) {
  const word = states.find(([, state]) => state === r.state)?.[2] ?? "unknown";
  return (
    <>
      {word}
      {r.state === LimitRequestState.OPEN && (
        <>
          , {r.approvals.length} of {r.approvalsNeeded} approvals, until <Instant at={r.endsAt} exact />
        </>
      )}
      {r.revision > 0n && `, revision ${r.revision}`}
      {r.closedBy && (
        <>
          {" "}
          by <bdi>{r.closedBy}</bdi>
        </>
      )}
      {r.closedReason && (
        <>
          : <bdi>{r.closedReason}</bdi>
        </>
      )}
    </>
  );
}
