// What has happened to one allocation, from its record and its events.
import { timestampMs, type Timestamp } from "@bufbuild/protobuf/wkt";
import { AllocationState, type Allocation } from "#gen/allocation_pb";
import { EventKind, type Event } from "#gen/event_pb";
import { eventWord, hasEnded, stateWord } from "./allocation";

/** Happening is one row of the history of an allocation. */
export interface Happening {
  key: string;
  at?: Timestamp;
  what: string;
  /** The event, if one is remembered. */
  event?: Event;
}

/** How the end of an allocation is told by an event. */
const endOf: Partial<Record<AllocationState, EventKind[]>> = {
  [AllocationState.EXPIRED]: [EventKind.EXPIRED, EventKind.DECLARED_END],
  [AllocationState.PREEMPTED]: [EventKind.PREEMPTED],
  [AllocationState.TIMED_OUT]: [EventKind.DROPPED],
  [AllocationState.ABANDONED]: [EventKind.DROPPED],
};

/** historyOf joins a record with its events, oldest first. Only the last end of an id is in its record. */
export function historyOf(a: Allocation | undefined, events: Event[]): Happening[] {
  const rows: Happening[] = events.map((event) => ({
    key: `event ${event.number}`,
    at: event.happenedAt,
    what: eventWord(event.kind),
    event,
  }));
  if (a?.waiting) rows.push({ key: "waits", at: a.waiting.arrivedAt, what: "began to wait" });
  if (a?.resize?.waiting) rows.push({ key: "resize", at: a.resize.waiting.arrivedAt, what: "a resize began to wait" });
  if (a?.grantedAt) rows.push({ key: "granted", at: a.grantedAt, what: a.forced ? "granted by force" : "granted" });
  if (a && hasEnded(a.state) && !events.some((e) => endOf[a.state]?.includes(e.kind))) {
    rows.push({ key: "ended", at: a.endedAt, what: stateWord(a.state) });
  }
  const time = (h: Happening) => (h.at ? timestampMs(h.at) : 0);
  return rows.sort((x, y) => time(x) - time(y));
}
