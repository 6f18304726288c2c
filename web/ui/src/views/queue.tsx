// Who waits, for what, and what is in the way.
import type { WaitingRequest } from "#gen/allocation_pb";
import type { ComponentChildren } from "preact";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { filter, useTypedFilter } from "../components/filters";
import { NodePicker, TreePicker } from "../components/pickers";
import { Answer, Empty } from "../components/states";
import { setQuery } from "../router";
import { resourcesOf } from "../api/units";
import { QueueTable } from "./queue_table";

const pageSize = 50;

/** Queue lists waiting requests in the order in which they are tried. */
export function Queue() {
  return (
    <>
      <h1>Queue</h1>
      <Filters />
      <Requests />
    </>
  );
}

function Filters() {
  const tree = filter("tree");
  const resource = filter("resource");
  const [node, typeNode] = useTypedFilter("node");
  const [owner, typeOwner] = useTypedFilter("owner");
  const chooseTree = (name: string) => setQuery({ tree: name, node: undefined, resource: undefined });
  return (
    <form class="filters" role="search" aria-label="Waiting requests" onSubmit={(e) => e.preventDefault()}>
      <TreePicker value={tree} change={chooseTree} all="All trees" />
      <NodePicker tree={tree} value={node} change={typeNode} label="Node and below" />
      <label>
        Resource
        <select value={resource} disabled={!tree} onChange={(e) => setQuery({ resource: e.currentTarget.value })}>
          <option value="">All resources</option>
          {resourcesOf(tree).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Owner
        <input type="search" value={owner} onInput={(e) => typeOwner(e.currentTarget.value)} />
      </label>
    </form>
  );
}

function Requests() {
  const tree = filter("tree");
  const node = tree && filter("node");
  const resource = tree && filter("resource");
  const owner = filter("owner");
  const key = ["waiting", tree, node, resource, owner].join("\n");
  const pages = usePages<WaitingRequest>(key, { tree: tree || undefined, queue: true, usage: true }, async (read, pageToken, signal) => {
    const asked = { tree, node, resource, owner, pageSize, pageToken, read };
    const page = await api.allocations.listWaiting(asked, { signal });
    return { rows: page.requests, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  return (
    <Answer read={pages}>
      {(page) => (
        <>
          {!page.rows.length && <NobodyWaits filtered={!!(tree || owner)} />}
          <Group title="Will not fit as the limits are now" requests={page.rows.filter((r) => r.decision?.neverFits)}>
            Each of these is larger than a limit itself. It waits until the limit is raised; releasing something does
            not help.
          </Group>
          <Group title="Waiting" requests={page.rows.filter((r) => !r.decision?.neverFits)} />
          {pages.more && <button onClick={pages.more}>Show more</button>}
          {page.filtered && <p class="quiet">Only what you may see is listed.</p>}
        </>
      )}
    </Answer>
  );
}

function NobodyWaits({ filtered }: { filtered: boolean }) {
  return <Empty>{filtered ? "No request waits that these filters select." : "No request waits: all that was asked for is held."}</Empty>;
}

interface GroupProps {
  title: string;
  requests: WaitingRequest[];
  children?: ComponentChildren;
}

function Group({ title, requests, children }: GroupProps) {
  if (!requests.length) return null;
  return (
    <section>
      <h2>{title}</h2>
      {children && <p class="quiet">{children}</p>}
      <QueueTable caption={title} requests={requests} />
    </section>
  );
}
