// Watches that continue at another server when theirs fails.

import { addNamespace } from "./names.js";
import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Client } from "./client.js";
import { now, sleep } from "./clock.js";
import { GatewayError, isTransient, UnavailableError } from "./errors.js";
import { WatchEventsRequestSchema, type WatchEventsResponse } from "./gen/quorate/v1/event_pb.js";
import { WatchChangesRequestSchema, type WatchChangesResponse } from "./gen/quorate/v1/change_pb.js";
import { Pauses } from "./transport.js";

/** How long a stream may be silent. Servers send a message at least every few seconds. */
const silenceMs = 20_000;

export interface WatchOptions {
  /** Ends the watch. The iteration then ends without an error. */
  signal?: AbortSignal | undefined;
  /** Is called when a server has sent the first message of a stream, heartbeats included. */
  onOpen?: (() => void) | undefined;
  /** Is called with the reason why a stream has ended, before the next one. */
  notice?: ((failure: unknown) => void) | undefined;
}

/** Reads one stream after the other, from any server, and yields all their messages. */
async function* readStreams<T>(
  client: Client, open: (signal: AbortSignal) => AsyncIterable<T>, patienceMs: number, options: WatchOptions,
): AsyncGenerator<T, void, undefined> {
  let heard = now();
  let pauses = new Pauses();
  let wasRefused = false; // the credential, since the last message
  while (!options.signal?.aborted) {
    const index = client.servers.current;
    const ending = new AbortController();
    const stop = () => ending.abort();
    options.signal?.addEventListener("abort", stop, { once: true });
    let silence = setTimeout(stop, silenceMs);
    let failure: unknown = new ConnectError("the stream has ended", Code.Unavailable);
    try {
      let isFirst = true;
      for await (const message of open(ending.signal)) {
        clearTimeout(silence);
        heard = now();
        pauses = new Pauses();
        wasRefused = false;
        if (isFirst) {
          isFirst = false;
          options.onOpen?.();
        }
        yield message;
        silence = setTimeout(stop, silenceMs);
      }
    } catch (e) {
      const isRefused = e instanceof ConnectError && e.code === Code.Unauthenticated;
      const mayBeReplaced = isRefused && client.hasTokenSource && !wasRefused;
      if (!options.signal?.aborted && isFinal(e) && !mayBeReplaced) {
        throw e;
      }
      wasRefused ||= isRefused;
      failure = e;
    } finally {
      clearTimeout(silence);
      options.signal?.removeEventListener("abort", stop);
      ending.abort();
      client.servers.advanceFrom(index);
    }
    if (options.signal?.aborted) {
      return;
    }
    if (now() - heard > patienceMs) {
      throw new UnavailableError(failure);
    }
    options.notice?.(failure);
    await sleep(pauses.next(failure), options.signal).catch(() => undefined);
  }
}

/**
 * True if a server has refused to continue for another reason than that the caller was too slow. What a gateway or the
 * network says is not final.
 */
function isFinal(e: unknown): boolean {
  return e instanceof ConnectError && !(e.cause instanceof GatewayError) && !isTransient(e) &&
    e.code !== Code.ResourceExhausted;
}

/** The changes of what a request watches after its position, in order, without heartbeats. */
export async function* watchEvents(
  client: Client, input: MessageInitShape<typeof WatchEventsRequestSchema>, options: WatchOptions,
): AsyncGenerator<WatchEventsResponse, void, undefined> {
  const from = clone(WatchEventsRequestSchema, create(WatchEventsRequestSchema, input));
  addNamespace(from, client.namespace);
  const open = (signal: AbortSignal) => client.events.watchEvents(from, { signal });
  for await (const message of readStreams(client, open, client.patienceMs, options)) {
    // The position moves on when the caller asks for the next change, so that it has seen this one.
    if (message.payload.case) {
      yield message;
    }
    from.afterIndex = message.index;
    from.afterNumber = message.number;
  }
}

/** What may have changed, heartbeats included. */
export async function* watchChanges(
  client: Client, input: MessageInitShape<typeof WatchChangesRequestSchema>, options: WatchOptions,
): AsyncGenerator<WatchChangesResponse, void, undefined> {
  const from = clone(WatchChangesRequestSchema, create(WatchChangesRequestSchema, input));
  const open = (signal: AbortSignal) => client.changes.watchChanges(from, { signal });
  for await (const message of readStreams(client, open, Infinity, options)) {
    yield message;
    if (message.everything || message.index > from.afterIndex) { // a server that is behind has a lower index
      from.afterIndex = message.index;
    }
  }
}
