// The figures of the cluster: what is held, what waits, what was denied, and what ends soon.
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { EventKind } from "#gen/event_pb";
import type { ListTreesResponse } from "#gen/tree_pb";
import type { ComponentChildren } from "preact";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { useRepeat } from "../api/repeat";
import { Sparkline } from "../components/sparkline";
import { Ago, ledgerNow, now } from "../components/time";
import { counted } from "../format";
import { address } from "../router";

const minute = 60_000;

/** Leases that end within this many milliseconds end soon. */
const soon = 15 * minute;

/** The denials of so many minutes are drawn, in steps of five. */
const drawnMinutes = 60;
const stepMinutes = 5;

/** How many leases and denials are read at most, and how often. */
const mostLeases = 500;
const mostDenials = 300;
const every = 15_000;

/** Figures are the numbers that a person looks at first. */
export function Figures({ trees: { trees } }: { trees: ListTreesResponse }) {
  const sum = (of: (t: (typeof trees)[number]) => bigint) => trees.reduce((n, t) => n + of(t), 0n);
  const waiting = sum((t) => t.waitingRequests);
  const since = trees.filter((t) => t.waitingRequests > 0n).map((t) => t.waitingSinceLedgerMs);
  const oldest = since.reduce((first, at) => (at < first ? at : first), since[0] ?? 0n);
  return (
    <div class="figures">
      <Figure title="Claims held" value={String(sum((t) => t.claimCount))} to={address("tree")}>
        in {counted(trees.length, "tree")}
      </Figure>
      <Figure title="Requests waiting" value={String(waiting)} to={address("queue")}>
        {waiting > 0n ? "in the queue" : "the queue is empty"}
      </Figure>
      <Figure title="Oldest wait" value={waiting > 0n ? <Ago ledgerMs={oldest} /> : "–"} to={address("queue")}>
        {waiting > 0n ? "without an answer" : "no request waits"}
      </Figure>
      <Denials count={sum((t) => t.deniedRequests)} />
      <EndingLeases />
    </div>
  );
}

interface FigureProps {
  title: string;
  value: ComponentChildren;
  to: string;
  children: ComponentChildren;
}

function Figure({ title, value, to, children }: FigureProps) {
  return (
    <a class="figure" href={to}>
      <span class="figure-title">{title}</span>
      <span class="figure-value">{value}</span>
      <span class="figure-note">{children}</span>
    </a>
  );
}

function Denials({ count }: { count: bigint }) {
  const read = useRead("denials", {}, (fresh, signal) =>
    api.events.listEvents({ kind: EventKind.DENIED, newestFirst: true, pageSize: mostDenials, read: fresh }, { signal }),
  );
  useRepeat(read.again, every);
  const times = (read.data?.events ?? []).flatMap((e) => (e.happenedAt ? [timestampMs(e.happenedAt)] : []));
  return (
    <Figure title="Denied in 10 minutes" value={String(count)} to={address("queue")}>
      <Sparkline values={perStep(times, now.value)} />
      {times.length ? `the last ${drawnMinutes} minutes` : "no denial is remembered"}
    </Figure>
  );
}

/** perStep counts times in the steps that are drawn, the present one last. */
function perStep(times: number[], present: number): number[] {
  const counts = new Array<number>(drawnMinutes / stepMinutes).fill(0);
  for (const at of times) {
    const step = Math.floor(Math.max(0, present - at) / (stepMinutes * minute));
    if (step < counts.length) counts[counts.length - 1 - step]!++;
  }
  return counts;
}

function EndingLeases() {
  const read = useRead("ending leases", {}, (fresh, signal) =>
    api.allocations.listAllocations({ leases: true, pageSize: mostLeases, read: fresh }, { signal }),
  );
  useRepeat(read.again, every);
  const at = ledgerNow();
  const leases = read.data?.allocations ?? [];
  const ending = at === undefined ? 0 : leases.filter((a) => Number(a.expiresLedgerMs) - at < soon).length;
  return (
    <Figure title="Leases ending soon" value={read.data ? String(ending) : "…"} to={address("leases")}>
      in 15 minutes, of {read.data?.nextPageToken ? `the first ${leases.length}` : counted(leases.length, "lease")}
    </Figure>
  );
}
