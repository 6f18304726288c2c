// Leases on a time line, and how those ended that have.
import { type Allocation } from "#gen/allocation_pb";
import { EventKind } from "#gen/event_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { useRepeat } from "../api/repeat";
import { filter, useTypedFilter } from "../components/filters";
import { NodePicker, TreePicker } from "../components/pickers";
import { Answer, Empty } from "../components/states";
import { ledgerNow } from "../components/time";
import { setQuery } from "../router";
import { EndedLately } from "./leases_ended";
import { LeaseTable } from "./leases_table";

/** How many leases are read at once. */
const pageSize = 500;

/** Renewals are no changes that the server tells of. */
const renewalsEvery = 5000;

/** Leases shows the leases that are held, and how others ended. */
export function Leases() {
  return (
    <>
      <h1>Leases</h1>
      <Filters />
      <Held />
      <EndedLately kinds={[EventKind.EXPIRED, EventKind.REVOKED, EventKind.DECLARED_END]} />
    </>
  );
}

function Filters() {
  const tree = filter("tree");
  const [node, typeNode] = useTypedFilter("node");
  const [user, typeUser] = useTypedFilter("user");
  return (
    <form class="filters" role="search" aria-label="Leases" onSubmit={(e) => e.preventDefault()}>
      <TreePicker value={tree} change={(name) => setQuery({ tree: name, node: undefined })} all="All trees" />
      <NodePicker tree={tree} value={node} change={typeNode} label="Node and below" />
      <label>
        User
        <input value={user} autocomplete="off" spellcheck={false} onInput={(e) => typeUser(e.currentTarget.value)} />
      </label>
      <label>
        Order
        <select value={filter("order")} onChange={(e) => setQuery({ order: e.currentTarget.value })}>
          <option value="">by node</option>
          <option value="end">soonest end first</option>
        </select>
      </label>
    </form>
  );
}

function Held() {
  const tree = filter("tree");
  const node = tree && filter("node");
  const user = filter("user");
  const key = ["leases", tree, node, user].join("\n");
  const pages = usePages<Allocation>(key, { tree: tree || undefined, usage: true }, async (read, pageToken, signal) => {
    const asked = { tree, node, user, leases: true, pageSize, pageToken, read };
    const page = await api.allocations.listAllocations(asked, { signal });
    return { rows: page.allocations, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  useRepeat(pages.again, renewalsEvery);
  return (
    <Answer read={pages}>
      {(page) => (
        <>
          {page.rows.length > 0 ? (
            <LeaseTable leases={page.rows} now={ledgerNow() ?? 0} />
          ) : (
            <Empty>
              No lease is held{tree || user ? " here" : ""}. <code>quorate allocate --ttl 30s</code> makes one.
            </Empty>
          )}
          {pages.more && <button onClick={pages.more}>Show more</button>}
          {pages.more && <p class="quiet">There are more leases. These are the ones that were granted first.</p>}
          {page.filtered && <p class="quiet">Only what you may see is listed.</p>}
        </>
      )}
    </Answer>
  );
}
