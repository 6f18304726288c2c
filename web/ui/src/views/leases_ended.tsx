// Leases that ended without a release of their holder.
import type { Event, EventKind } from "#gen/event_pb";
import { api } from "../api/clients";
import { amountText } from "../api/units";
import { useRead, type Fresh } from "../api/read";
import { filter } from "../components/filters";
import { AllocationLink } from "../components/names";
import { Answer, Empty } from "../components/states";
import { Table } from "../components/table";
import { Instant } from "../components/time";
import { detailOf, eventWord, reasonText } from "../requests/allocation";

/** How many events of each kind are shown at most. */
const most = 20;

/** EndedLately lists the latest events of some kinds, newest first. */
export function EndedLately({ kinds }: { kinds: EventKind[] }) {
  const tree = filter("tree");
  const node = tree && filter("node");
  const key = `ended ${kinds.join()}\n${tree}\n${node}`;
  const read = useRead(key, { tree: tree || undefined, usage: true }, (fresh, signal) =>
    askAll(kinds, { tree, node }, fresh, signal),
  );
  return (
    <section>
      <h2>Recently ended</h2>
      <Answer read={read}>
        {(answer) =>
          answer.events.length ? (
            <Table caption="Leases that ended" columns={columns} rows={answer.events} keyOf={(e) => String(e.number)} />
          ) : (
            <Empty>No lease that the server remembers has expired or was revoked{tree ? " here" : ""}.</Empty>
          )
        }
      </Answer>
    </section>
  );
}

async function askAll(kinds: EventKind[], at: { tree: string; node: string }, read: Fresh, signal: AbortSignal) {
  const ask = (kind: EventKind) =>
    api.events.listEvents({ ...at, kind, newestFirst: true, pageSize: most, read }, { signal });
  const answers = await Promise.all(kinds.map(ask));
  const events = answers.flatMap((a) => a.events).sort((a, b) => (a.number < b.number ? 1 : -1));
  return { events: events.slice(0, most), read: answers[0]?.read };
}

const columns = [
  { title: "When", cell: (e: Event) => <Instant at={e.happenedAt} /> },
  { title: "Lease", cell: (e: Event) => <AllocationLink of={e} /> },
  { title: "How", cell: (e: Event) => eventWord(e.kind) },
  { title: "Why", cell: (e: Event) => <Why event={e} /> },
];

function Why({ event: e }: { event: Event }) {
  const { reason } = detailOf(e);
  if (reason) return <bdi>{reasonText(reason, amountText)}</bdi>;
  return e.by ? (
    <>
      for <AllocationLink of={e.by} beside={e.namespace} />
    </>
  ) : (
    <span class="quiet">it was not renewed in time</span>
  );
}
