// Concurrent calls that are sent together.

import { create, toBinary, type DescMessage, type DescMethodUnary, type Message,
  type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { isTransient, mayBeDone } from "./errors.js";
import {
  AllocationService, BatchAllocateRequestSchema, BatchReleaseRequestSchema, BatchRenewRequestSchema,
  type AllocateRequest, type Failure, type ReleaseRequest, type RenewRequest,
} from "./gen/quorate/v1/allocation_pb.js";
import { DecisionSchema, ProblemSchema } from "./gen/quorate/v1/decision_pb.js";
import type { Send, Sending } from "./transport.js";
import { now } from "./clock.js";

/** How many calls or batches of one method are under way at a time while others wait to be joined. */
const slots = 2;
/** The most calls in one batch, which is the bound of the API. */
const mostCalls = 1000;
/** The most bytes of a batch: servers queue requests of more than 128 KiB apart from small ones. */
const mostBytes = 96 << 10;
/** The size from which on a call is not joined, so that it cannot delay many small ones. */
const mostCallBytes = 8 << 10;

type Outcome = { outcome: { case: string | undefined; value?: unknown } };

/** A method whose calls can be joined into calls of its batch method. */
interface Joined {
  isJoinable(request: Message): boolean;
  /** Sends the requests as a batch and returns an outcome for each. */
  sendBatch(requests: Message[], sending: Sending): Promise<Outcome[]>;
}

/**
 * Returns a send that joins concurrent attempts of Allocate, Release and Renew into batches. Each caller has its own
 * answer, error, deadline and retries, as if it had called alone.
 */
export function joinCalls(send: Send): Send {
  const { allocate, release, renew, batchAllocate, batchRelease, batchRenew } = AllocationService.method;
  const queues = new Map<DescMethodUnary, Queue>([
    // A call with pollMs waits for its grant, which a batch does not.
    [allocate, new Queue(send, {
      isJoinable: (r) => (r as AllocateRequest).pollMs === 0n,
      sendBatch: async (requests, sending) => (await send(batchAllocate, create(BatchAllocateRequestSchema,
        { requests: requests as AllocateRequest[] }), sending)).message.outcomes,
    })],
    [release, new Queue(send, {
      isJoinable: () => true,
      sendBatch: async (requests, sending) => (await send(batchRelease, create(BatchReleaseRequestSchema,
        { requests: requests as ReleaseRequest[] }), sending)).message.outcomes,
    })],
    [renew, new Queue(send, {
      isJoinable: () => true,
      sendBatch: async (requests, sending) => (await send(batchRenew, create(BatchRenewRequestSchema,
        { renewals: requests as RenewRequest[] }), sending)).message.outcomes,
    })],
  ]);
  return (method, message, sending) => {
    const queue = queues.get(method as unknown as DescMethodUnary);
    return queue && !sending.header ? queue.call(method, message, sending) : send(method, message, sending);
  };
}

/** A call that waits for a slot, or is in a batch that is under way. */
interface Waiting {
  request: Message;
  index: number;
  size: number;
  until: number;
  /** Makes the call alone. */
  sendAlone(): Promise<void>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * While fewer calls and batches than slots are under way, a call is made at once and on its own. Otherwise it waits, in
 * the order of arrival, and is sent with all others that wait when a slot is free again. There is no timer: a batch is
 * as large as the load makes it.
 */
class Queue {
  #underWay = 0;
  #waiting: Waiting[] = [];

  constructor(readonly send: Send, readonly joined: Joined) {}

  call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, message: MessageShape<I>, sending: Sending,
  ): Promise<UnaryResponse<I, O>> {
    const request = message as Message;
    if (!this.joined.isJoinable(request)) {
      return this.send(method, message, sending);
    }
    const size = toBinary(method.input, message).byteLength;
    if (size > mostCallBytes) {
      return this.send(method, message, sending);
    }
    return new Promise<UnaryResponse<I, O>>((resolve, reject) => {
      const until = now() + sending.timeoutMs;
      const end = () => {
        clearTimeout(timer);
        sending.signal?.removeEventListener("abort", stop);
      };
      const call: Waiting = {
        request, size, until, index: sending.index,
        sendAlone: () => this.send(method, message, { ...sending, timeoutMs: Math.max(until - now(), 1) })
          .then(resolve, reject).finally(end),
        resolve: (value) => {
          end();
          resolve({
            stream: false, service: method.parent, method, header: new Headers(), trailer: new Headers(),
            message: value as MessageShape<O>,
          });
        },
        reject: (error) => {
          end();
          reject(error);
        },
      };
      const stop = () => this.#giveUp(call, Code.Canceled, sending.signal?.reason);
      const timer = setTimeout(() => this.#giveUp(call, Code.DeadlineExceeded), sending.timeoutMs);
      sending.signal?.addEventListener("abort", stop, { once: true });
      if (this.#underWay < slots) {
        this.#underWay++;
        clearTimeout(timer);
        void call.sendAlone().finally(() => this.#leave());
        return;
      }
      this.#waiting.push(call);
    });
  }

  /** Ends the wait of a caller. A call that was not taken was certainly not sent. */
  #giveUp(call: Waiting, code: Code, cause?: unknown): void {
    const at = this.#waiting.indexOf(call);
    if (at < 0) {
      call.reject(new ConnectError("no answer in time to the call that others were joined with", code, undefined,
        undefined, cause));
      return;
    }
    this.#waiting.splice(at, 1);
    call.reject(new ConnectError("the call was not sent in time", code, undefined,
      [{ desc: ProblemSchema, value: { reason: "DEADLINE", notApplied: true } }], cause));
  }

  /** Gives a slot back, or uses it for the calls that wait. */
  #leave(): void {
    const calls = this.#take();
    if (calls.length === 0) {
      this.#underWay--;
      return;
    }
    const sent = calls.length === 1 ? calls[0]!.sendAlone() : this.#sendBatch(calls);
    void sent.finally(() => this.#leave());
  }

  #take(): Waiting[] {
    const taken: Waiting[] = [];
    let size = 0;
    this.#waiting = this.#waiting.filter((call) => {
      const fits = taken.length === 0 ||
        (call.index === taken[0]!.index && taken.length < mostCalls && size + call.size <= mostBytes);
      if (fits) {
        taken.push(call);
        size += call.size;
      }
      return !fits;
    });
    return taken;
  }

  /**
   * Makes the call of a batch and distributes its outcomes. If a server refused the batch as such, each caller makes
   * its call alone, because what a server says about a batch is not an answer to one call.
   */
  async #sendBatch(calls: Waiting[]): Promise<void> {
    const timeoutMs = Math.max(Math.max(...calls.map((c) => c.until)) - now(), 1);
    try {
      const outcomes = await this.joined.sendBatch(calls.map((c) => c.request), {
        index: calls[0]!.index, timeoutMs, signal: undefined, header: undefined, contextValues: undefined,
      });
      if (outcomes.length !== calls.length) {
        throw new ConnectError(`${calls.length} calls were sent, and ${outcomes.length} outcomes came back`,
          Code.Internal);
      }
      calls.forEach((call, i) => {
        const { case: kind, value } = outcomes[i]!.outcome;
        if (kind === "failure") {
          call.reject(errorOfFailure(value as Failure));
        } else {
          call.resolve(value);
        }
      });
    } catch (e) {
      const error = ConnectError.from(e);
      const isShared = isTransient(error) || mayBeDone(error) || !error.isWireError ||
        error.code === Code.Unauthenticated;
      await Promise.all(calls.map((call) => (isShared ? call.reject(error) : call.sendAlone())));
    }
  }
}

/** The error that a unary call would have returned. */
export function errorOfFailure(failure: Failure): ConnectError {
  const code = codeFromString(failure.code) ?? Code.Unknown;
  return new ConnectError(failure.message, code, undefined, [
    ...(failure.decision ? [{ desc: DecisionSchema, value: failure.decision }] : []),
    ...(failure.problem ? [{ desc: ProblemSchema, value: failure.problem }] : []),
  ]);
}
