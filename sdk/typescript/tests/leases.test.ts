// Waiting, leases and watches.

import { Code, ConnectError } from "@connectrpc/connect";
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, LeaseLostError, LeaseReleasedError, TimedOutError, UnavailableError, v1 } from "../src/index.js";
import { machine } from "../src/clock.js";
import { grant, problem, renewAll, renewed, withServers, type Answer } from "./fake_server.js";

const request = { id: "x", claims: [{ tree: "t", amounts: { cores: 1n } }] };

function waiting(): Answer {
  return [200, { allocation: { id: "x", state: "ALLOCATION_STATE_WAITING" }, decision: { explanation: "full" } }];
}

/** Grants, renews and releases. A first answer that was slow is followed by a renewal. */
function leaseAnswer(method: string, r: Record<string, unknown>, ttlMs: number): Answer {
  switch (method) {
    case "BatchRenew":
      return renewAll(r, ttlMs);
    case "Renew":
      return [200, renewed(r["id"], ttlMs)];
    case "Allocate":
      return [200, grant(r["id"], ttlMs)];
    default:
      return [200, {}];
  }
}

function over(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
}

test("a lease is renewed", () => withServers(
  [(method, r) => leaseAnswer(method, r, 600)],
  {}, async (client, [server]) => {
    const lease = await client.acquire(request);
    await sleep(1500);
    lease.check();
    assert.ok(lease.remainingMs > 0);
    const renewals = server!.asked.filter((a) => a.method === "BatchRenew");
    assert.ok(renewals.length >= 4, String(renewals.length));
    assert.deepEqual(renewals[0]!.request.renewals, [{ id: "x", fence: "7" }]);
    await lease.release();
    assert.throws(() => lease.check(), LeaseReleasedError);
    assert.equal(lease.remainingMs, 0);
    assert.equal(server!.asked.at(-1)!.method, "Release");
  }));

test("leases are renewed together", () => withServers(
  [(method, r) => leaseAnswer(method, r, 900)],
  { join: false }, async (client, [server]) => {
    const leases = await Promise.all(["0", "1", "2", "3"].map((id) => client.acquire({ ...request, id })));
    await sleep(600);
    const sizes = server!.asked.filter((a) => a.method === "BatchRenew").map(
      (a) => a.request.renewals.length as number);
    assert.ok(Math.max(...sizes) > 1, String(sizes));
    await Promise.all(leases.map((lease) => lease.release()));
  }));

test("the safe moment comes although a renewal hangs", () => withServers(
  [(method, r) => (method === "BatchRenew" ? new Promise(() => undefined) : leaseAnswer(method, r, 1000))],
  {}, async (client) => {
    const sent = performance.now();
    const lease = await client.acquire(request);
    await over(lease.signal);
    assert.ok(performance.now() - sent < 1000);
    assert.ok(lease.endsInMs > 0);
    assert.throws(() => lease.check(), /could not be renewed in time/);
  }));

test("the time of a suspended machine counts", () => withServers(
  [(method, r) => leaseAnswer(method, r, 9_000)], {}, async (client) => {
    const told = machine.suspendedMs();
    const lease = await client.acquire(request);
    assert.ok(lease.remainingMs > 1_000, String(lease.remainingMs));
    const suspendedMs = machine.suspendedMs;
    machine.suspendedMs = () => told + 3_600_000;
    try {
      assert.equal(lease.remainingMs, 0);
      await over(lease.signal);
      assert.throws(() => lease.check(), /could not be renewed in time/);
    } finally {
      machine.suspendedMs = suspendedMs;
    }
  }));

test("check looks at the clock when timers are late", () => withServers(
  [(method, r) => leaseAnswer(method, r, 300)], {}, async (client) => {
    const lease = await client.acquire(request);
    for (const until = performance.now() + 350; performance.now() < until;) {
      // the thread is busy
    }
    assert.throws(() => lease.check(), LeaseLostError);
  }));

test("how a lease is lost", async () => {
  for (const [code, revoker, how] of [["not_found", "", "ended"], ["failed_precondition", "", "ended"],
    ["aborted", "", "taken"], ["not_found", "y", "preempted"]] as const) {
    const revokedBy = revoker ? { id: revoker } : undefined;
    await withServers([(method, r) => (method === "BatchRenew"
      ? [200, { outcomes: [{ failure: { code, message: "over" } }] }]
      : [200, method === "Renew" ? renewed(r["id"], 600, { revokedBy }) : grant(r["id"], 600, { revokedBy })])], {},
        async (client) => {
      const lease = await client.acquire(request);
      await over(lease.signal);
      const lost = lease.signal.reason as LeaseLostError;
      assert.deepEqual([lost.how, lost.by], [how, revoker]);
    });
  }
});

test("waiting is reported and polls", () => {
  const answers = [waiting(), waiting(), [200, grant("x", 60_000)] as Answer];
  return withServers([(method) => (method === "Renew" ? [200, renewed("x", 60_000)] : method === "Allocate"
    ? answers.shift()! : [200, method === "WatchEvents" ? [] : {}])], {}, async (client, [server]) => {
    const seen: unknown[] = [];
    const lease = await client.acquire(request,
      { timeoutMs: 30_000, progress: (p) => seen.push(p.decision?.explanation) });
    const asked = server!.asked.filter((a) => a.method === "Allocate").map((a) => a.request);
    assert.deepEqual(seen, ["full", "full"]);
    assert.deepEqual(asked.map((r) => r.pollMs), [undefined, "10000", "10000"]);
    assert.deepEqual(asked.map((r) => [r.mode, r.waitMs]), Array(3).fill(["MODE_WAIT", "30000"]));
    assert.equal(server!.asked.filter((a) => a.method === "Renew").length, 1,
      "a grant that had to wait is renewed at once");
    await lease.release();
  });
});

test("the caller stops waiting", () => withServers(
  [(method) => (method === "Allocate" ? waiting() : [200, {}])], {}, async (client, [server]) => {
    await assert.rejects(client.acquire(request, { signal: AbortSignal.timeout(200) }),
      (e: ConnectError) => e.code === Code.Canceled && /was cancelled/.test(e.message));
    assert.deepEqual([server!.asked.at(-1)!.method, server!.asked.at(-1)!.request], ["Release", { id: "x" }]);
  }));

test("the time to wait is over", () => withServers([(method, r) => {
  if (method === "GetAllocation") {
    return [200, { allocation: { id: "x", state: "ALLOCATION_STATE_TIMED_OUT" } }];
  }
  return r["pollMs"] ? [400, problem("failed_precondition", "ENDED")] : waiting();
}], {}, async (client) => {
  await assert.rejects(client.acquire(request), (e: TimedOutError) => e.decision?.explanation === "full");
}));

test("no server answers", async () => {
  await assert.rejects(new Client(["127.0.0.1:9999"]).acquire(request, { timeoutMs: 300 }), UnavailableError);
});

test("what makes no lease", async () => {
  await assert.rejects(new Client(["127.0.0.1:9999"]).acquire({ mode: v1.Mode.RESERVE }), /makes no lease/);
});

test("a watch resumes after the last change", () => {
  const change = (index: number) => ({
    index: String(index), number: 1,
    change: { kind: "ALLOCATION_CHANGE_KIND_GRANTED", allocation: { id: "x" } },
  });
  const streams = [[change(5), { index: "6" }], [change(7), { end: { error: { code: "unavailable" } } }], [change(8)]];
  return withServers([() => [200, streams.shift()!]], {}, async (client, [server]) => {
    const seen: bigint[] = [];
    for await (const { index } of client.watch({ tree: "t" })) {
      seen.push(index);
      if (seen.length === 3) {
        break;
      }
    }
    assert.deepEqual(seen, [5n, 7n, 8n]);
    assert.deepEqual(server!.asked.map((a) => [a.request.tree, a.request.afterIndex, a.request.afterNumber]),
      [["t", undefined, undefined], ["t", "6", undefined], ["t", "7", 1]]);
  });
});

test("a refusal ends a watch", () => withServers(
  [() => [200, [{ end: { error: problem("out_of_range", "FORGOTTEN") } }]]], {}, async (client) => {
    await assert.rejects(client.watch().next(), (e: ConnectError) => e.code === Code.OutOfRange);
  }));

test("a signal ends a watch", () => withServers([() => new Promise(() => undefined)], {}, async (client) => {
  const { done } = await client.watchChanges({}, { signal: AbortSignal.timeout(100) }).next();
  assert.equal(done, true);
}));
