// Plays the scenarios of sdk/scenarios with the TypeScript client: reads a step a line, and writes its outcome.

import { fromJson, toJson, type JsonValue } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  Client, DeniedError, LeaseLostError, mayBeDone, problemOf, TimedOutError, UnavailableError, v1, type Lease,
} from "@quorate/client";
import { createInterface } from "node:readline";

interface Step {
  do: string;
  as: string;
  request: JsonValue;
  within: number;
  timeout?: number;
  background?: boolean;
  id: string;
  tree: string;
  node: string;
  resource: string;
  amount: number;
  count: number;
  hold?: boolean;
}

type Outcome = Record<string, unknown>;

const client = new Client(process.argv[2]!.split(","));
const leases = new Map<string, Lease>();
const early = new Map<string, number>();
const waiting = new Map<string, Promise<Outcome>>();
const watches = new Map<string, AsyncGenerator<v1.WatchEventsResponse>>();

async function acquire(step: Step): Promise<Outcome> {
  const timeoutMs = step.timeout === undefined ? undefined : step.timeout * 1000;
  try {
    const lease = await client.acquire(fromJson(v1.AllocateRequestSchema, step.request), { timeoutMs });
    leases.set(step.as, lease);
    lease.signal.addEventListener("abort", () => early.set(lease.id, lease.endsInMs));
    return { outcome: "granted", id: lease.id, fence: String(lease.fence), items: lease.items };
  } catch (e) {
    return failedOutcome(e);
  }
}

function failedOutcome(e: unknown): Outcome {
  if (e instanceof DeniedError) {
    const { violations, neverFits } = toJson(v1.DecisionSchema, e.decision) as unknown as Outcome;
    return { outcome: "denied", neverFits, violations };
  }
  if (e instanceof TimedOutError) {
    return { outcome: "timed-out" };
  }
  if (e instanceof UnavailableError) {
    return { outcome: "unavailable", text: e.message, mayBeDone: mayBeDone(e.cause) };
  }
  if (e instanceof ConnectError) {
    const code = Code[e.code].replace(/(?!^)[A-Z]/g, (c) => "_" + c).toLowerCase();
    return { outcome: "failed", code, reason: problemOf(e)?.reason, text: e.message, mayBeDone: mayBeDone(e) };
  }
  throw e;
}

async function within<T>(seconds: number, promise: Promise<T>, otherwise: T): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T>((resolve) => (timer = setTimeout(() => resolve(otherwise), seconds * 1000)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function aborted(signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve(true);
    }
    signal.addEventListener("abort", () => resolve(true), { once: true });
  });
}

function stateName(state: v1.AllocationState): string {
  return v1.AllocationState[state].toLowerCase();
}

const players: Record<string, (step: Step) => Promise<Outcome>> = {
  async acquire(step) {
    if (!step.background) {
      return acquire(step);
    }
    waiting.set(step.as, acquire(step));
    return { outcome: "started" };
  },
  async await(step) {
    return within(step.within, waiting.get(step.as)!, { outcome: "waiting" });
  },
  async release(step) {
    await leases.get(step.as)!.release();
    return { outcome: "released" };
  },
  async "await-loss"(step) {
    const lease = leases.get(step.as)!;
    if (!(await within(step.within, aborted(lease.signal), false))) {
      return { outcome: "held" };
    }
    const lost = lease.signal.reason as LeaseLostError;
    return { outcome: "lost", how: lost.how, earlyMs: early.get(lease.id), text: lost.message };
  },
  async "await-revoked"(step) {
    const isRevoked = await within(step.within, aborted(leases.get(step.as)!.revoked), false);
    return { outcome: isRevoked ? "revoked" : "held" };
  },
  async state(step) {
    const { allocation } = await client.allocations.getAllocation({ id: step.id });
    return { outcome: "state", state: stateName(allocation!.state) };
  },
  async "set-limit"(step) {
    const limits = { [step.resource]: { value: { case: "amount" as const, value: BigInt(step.amount) } } };
    await client.trees.setLimits({ tree: step.tree, node: step.node, limits, reason: "scenario" });
    return { outcome: "set" };
  },
  async watch(step) {
    const opened = new Promise<Outcome>((resolve) => {
      const onOpen = () => resolve({ outcome: "watching" });
      watches.set(step.as, client.watch(fromJson(v1.WatchEventsRequestSchema, step.request), { onOpen }));
    });
    buffer(step.as, watches.get(step.as)!);
    return within(20, opened, { outcome: "silent" });
  },
  async next(step) {
    const event = await within<v1.WatchEventsResponse | undefined>(step.within, take(step.as), undefined);
    const change = event?.payload.case === "change" ? event.payload.value : undefined;
    const name = change && v1.AllocationChangeKind[change.kind].toLowerCase();
    return { outcome: change ? "change" : "silent", change: name, id: change?.allocation?.id };
  },
  async many(step) {
    const numbers = Array.from({ length: step.count }, (_, i) => i);
    const outcomes = await Promise.all(numbers.map((i) => acquire({ ...step, as: `many-${i}` })));
    if (!step.hold) {
      await Promise.all([...leases.values()].map((lease) => lease.release()));
      leases.clear();
    }
    const count = (outcome: string) => outcomes.filter((o) => o["outcome"] === outcome).length;
    return { outcome: "done", granted: count("granted"), denied: count("denied") };
  },
};

// A watch is read all the time, so that its position is that of the last change received.
const changes = new Map<string, v1.WatchEventsResponse[]>();
const takers = new Map<string, (change: v1.WatchEventsResponse) => void>();

function buffer(name: string, watch: AsyncGenerator<v1.WatchEventsResponse>): void {
  changes.set(name, []);
  void (async () => {
    for await (const change of watch) {
      const taker = takers.get(name);
      takers.delete(name);
      if (taker) {
        taker(change);
      } else {
        changes.get(name)!.push(change);
      }
    }
  })();
}

function take(name: string): Promise<v1.WatchEventsResponse> {
  const first = changes.get(name)!.shift();
  return first ? Promise.resolve(first) : new Promise((resolve) => takers.set(name, resolve));
}

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line) as Step;
  const outcome = await players[step.do]!(step).catch((e: unknown) => ({ outcome: "error", text: String(e) }));
  process.stdout.write(JSON.stringify(outcome) + "\n");
}
process.exit(0);
