// Waiting for a grant.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import type { Client } from "./client.js";
import { now, sleep } from "./clock.js";
import {
  decisionOf, DeniedError, isTransient, LeaseLostError, mayBeDone, problemOf, TimedOutError, UnavailableError,
} from "./errors.js";
import {
  AllocationState, Mode, type AllocateRequest, type AllocateRequestSchema, type AllocateResponse, type Allocation,
} from "./gen/quorate/v1/allocation_pb.js";
import type { Decision } from "./gen/quorate/v1/decision_pb.js";
import { Lease, marginPart } from "./lease.js";
import { prepareRequest } from "./names.js";
import { withdrawOnSignal } from "./signals.js";
import { attemptKey, longestPauseMs, type Attempt } from "./transport.js";

/** How long a server waits for the grant before it answers with the position in the queue. */
const pollTimeMs = 10_000;
/** The shortest time between two calls, for servers that do not wait. */
const pollPauseMs = 100;
/** Bounds the call that withdraws a request when its caller stops waiting. */
const leavePatienceMs = 2000;
/** The longest wait that the API accepts. */
const mostWaitMs = 7 * 24 * 3600 * 1000;

/** The state of a waiting request. */
export interface Progress {
  elapsedMs: number;
  /** The record of the request; its field waiting has the position in the queue. */
  allocation: Allocation;
  /** The limits that are in the way now. */
  decision: Decision | undefined;
}

export interface AcquireOptions {
  /** How long the request may wait; without it, until the signal. */
  timeoutMs?: number | undefined;
  /** Stops waiting. It does not end a lease that was granted. */
  signal?: AbortSignal | undefined;
  /**
   * How long before the end of its TTL the lease ends for its holder, at most a third of the TTL; by default a tenth of
   * the TTL, and at most three seconds. Choose the time that the holder needs to stop.
   */
  marginMs?: number | undefined;
  /** Is called when the request begins to wait and then about every ten seconds. */
  progress?: ((progress: Progress) => void) | undefined;
}

/** One call of acquire or wait. */
export class Acquisition {
  readonly #client: Client;
  readonly #options: AcquireOptions;
  readonly #request: AllocateRequest;
  readonly #began = now();
  readonly #until: number;
  #last: AllocateResponse | undefined;

  constructor(client: Client, input: MessageInitShape<typeof AllocateRequestSchema>, options: AcquireOptions) {
    this.#client = client;
    this.#options = options;
    this.#until = this.#began + (options.timeoutMs ?? Infinity);
    this.#request = prepareRequest(input, client.namespace);
    switch (this.#request.mode) {
      case Mode.UNSPECIFIED:
      case Mode.WAIT:
        this.#request.mode = Mode.WAIT;
        if (options.timeoutMs !== undefined && this.#request.waitMs === undefined) {
          this.#request.waitMs = BigInt(Math.round(Math.min(Math.max(options.timeoutMs, 1000), mostWaitMs)));
        }
        break;
      case Mode.RESERVE:
        throw new TypeError("RESERVE makes no lease: leave the mode out, or call allocations.allocate");
      default:
    }
  }

  /** Waits for the grant and returns its lease. */
  async lease(): Promise<Lease> {
    const { answer, sentAt } = await this.wait();
    const lease = new Lease(this.#client, answer.allocation!, answer.allocation!.fence, this.#options.marginMs);
    // A grant that had to wait is renewed at once: its answer may come from a server that lags, and its request may
    // have taken long, so that it does not tell how long the lease lasts from now on.
    if (lease.ttlMs > 0 && (this.#last || now() - sentAt > lease.ttlMs / marginPart)) {
      const attempt: Attempt = { sentAt: 0 };
      try {
        const renewed = await this.#client.allocations.renew({ namespace: lease.namespace, id: lease.id, fence: lease.fence },
          this.#callOptions(attempt));
        lease.extend(renewed.allocation!, attempt.sentAt, renewed.write!.ledgerTimeMs);
      } catch (e) {
        throw await this.#failure(e);
      }
    } else {
      lease.extend(answer.allocation!, sentAt, answer.write!.ledgerTimeMs);
    }
    if (lease.ttlMs > 0) {
      this.#client.renewer.add(lease);
    }
    return lease;
  }

  /** Calls until the request is granted. Returns the answer, and when the call that was answered was sent. */
  wait(): Promise<{ answer: AllocateResponse; sentAt: number }> {
    return withdrawOnSignal(() => this.#stopWaiting(), () => this.#wait());
  }

  async #wait(): Promise<{ answer: AllocateResponse; sentAt: number }> {
    for (;;) {
      const attempt: Attempt = { sentAt: 0 };
      try {
        const answer = await this.#client.allocations.allocate(this.#request, this.#callOptions(attempt));
        if (answer.allocation?.state !== AllocationState.WAITING) {
          return { answer, sentAt: attempt.sentAt };
        }
        this.#last = answer;
        // The first call does not wait, so that progress is reported soon.
        this.#request.pollMs = BigInt(pollTimeMs);
        this.#options.progress?.({
          elapsedMs: now() - this.#began, allocation: answer.allocation, decision: answer.decision,
        });
        await sleep(pollPauseMs - (now() - attempt.sentAt), this.#options.signal);
      } catch (e) {
        throw await this.#failure(e);
      }
    }
  }

  #callOptions(attempt: Attempt) {
    const left = this.#until - now();
    return {
      signal: this.#options.signal,
      timeoutMs: left === Infinity ? this.#client.patienceMs + pollTimeMs : Math.max(left, 1),
      contextValues: createContextValues().set(attemptKey, attempt),
    };
  }

  /** Returns the typed error of a failed call, and withdraws the request if the servers may have it. */
  async #failure(e: unknown): Promise<unknown> {
    const isCancelled = this.#options.signal?.aborted === true;
    if (!isCancelled) {
      const decision = decisionOf(e);
      if (decision) {
        return new DeniedError(decision, e as ConnectError);
      }
      if (this.#last && problemOf(e)?.reason === "ENDED") {
        return this.#endOf(e);
      }
      if (e instanceof ConnectError && !isTransient(e)) {
        return e;
      }
      if (!(e instanceof ConnectError)) { // of the caller's progress
        await this.#stopWaiting();
        return e;
      }
    }
    if (this.#last || mayBeDone(e) || isCancelled) {
      await this.#stopWaiting();
    }
    if (isCancelled) {
      return new ConnectError(`waiting for "${this.#request.id}" was cancelled`, Code.Canceled, undefined, undefined,
        this.#options.signal?.reason);
    }
    const isLate = now() >= this.#until - 1.5 * longestPauseMs;
    return isLate && this.#last ? this.#timedOut(e) : new UnavailableError(e);
  }

  /** Distinguishes a request that timed out in the queue from one that ended otherwise. */
  async #endOf(e: unknown): Promise<Error> {
    const { id } = this.#request;
    const record = await this.#client.allocations.getAllocation({ id }).then((r) => r.allocation, () => undefined);
    return record?.state === AllocationState.TIMED_OUT ? this.#timedOut(e) : new LeaseLostError(id, "ended", "", e);
  }

  #timedOut(cause: unknown): TimedOutError {
    return new TimedOutError(this.#last?.decision, now() - this.#began, cause);
  }

  /**
   * Removes the request from the queue, or releases what it was granted at the last moment. If no server answers, the
   * request leaves the queue when its keepMs are over.
   */
  async #stopWaiting(): Promise<void> {
    await this.#client.allocations.release({ namespace: this.#request.namespace, id: this.#request.id }, { timeoutMs: leavePatienceMs })
      .catch((e: unknown) => this.#client.notice(e));
  }
}
