// Who waits at a node and below it.
import type { WaitingRequest } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { Answer, Empty } from "../components/states";
import { QueueTable } from "../views/queue_table";

const pageSize = 20;

/** Waiting lists requests in the order of the queue. */
export function Waiting({ tree, node }: { tree: string; node: string }) {
  const interest = { tree, queue: true, usage: true };
  const pages = usePages<WaitingRequest>(`waiting ${tree} ${node}`, interest, async (read, pageToken, signal) => {
    const page = await api.allocations.listWaiting({ tree, node, pageSize, pageToken, read }, { signal });
    return { rows: page.requests, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  return (
    <Answer read={pages}>
      {(page) => (
        <>
          {page.rows.length ? (
            <QueueTable caption="Requests that wait here" requests={page.rows} />
          ) : (
            <Empty>No request waits here.</Empty>
          )}
          {pages.more && <button onClick={pages.more}>Show more</button>}
          {page.filtered && <p class="quiet">Only what you may see is listed.</p>}
        </>
      )}
    </Answer>
  );
}
