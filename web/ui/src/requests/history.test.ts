import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { AllocationSchema, AllocationState, WaitingSchema } from "#gen/allocation_pb";
import { EventKind, EventSchema } from "#gen/event_pb";
import assert from "node:assert/strict";
import { test } from "node:test";
import { historyOf } from "./history";

const event = (number: bigint, kind: EventKind, ms: number) =>
  create(EventSchema, { number, kind, happenedAt: timestampFromMs(ms) });

test("the history of an allocation has its record and its events in order", () => {
  const a = create(AllocationSchema, {
    state: AllocationState.RELEASED,
    grantedAt: timestampFromMs(2000),
    endedAt: timestampFromMs(9000),
  });
  const rows = historyOf(a, [event(4n, EventKind.DENIED, 1000), event(9n, EventKind.REVOKED, 5000)]);
  assert.deepEqual(
    rows.map((r) => r.what),
    ["denied", "granted", "revoked", "released"],
  );
});

test("an end that an event tells is told once", () => {
  const a = create(AllocationSchema, {
    state: AllocationState.TIMED_OUT,
    waiting: create(WaitingSchema, { arrivedAt: timestampFromMs(1) }),
    endedAt: timestampFromMs(9000),
  });
  const rows = historyOf(a, [event(1n, EventKind.DROPPED, 9000)]);
  assert.deepEqual(
    rows.map((r) => r.what),
    ["began to wait", "dropped"],
  );
});

test("a request that was only denied has its denials", () => {
  assert.deepEqual(
    historyOf(undefined, [event(1n, EventKind.DENIED, 5)]).map((r) => r.what),
    ["denied"],
  );
});
