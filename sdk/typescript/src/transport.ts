// Calls that are repeated until a server answers.

import type { DescMessage, DescMethodStreaming, DescMethodUnary, Message, MessageInitShape,
  MessageShape } from "@bufbuild/protobuf";
import {
  Code, ConnectError, createContextKey, type ContextValues, type StreamResponse, type Transport, type UnaryResponse,
} from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { now, sleep, spread } from "./clock.js";
import { GatewayError, isTLSFailure, isTransient, mayBeDone, retryAfterMs } from "./errors.js";
import { withIDs } from "./names.js";
import type { Servers } from "./servers.js";

// Pauses between attempts grow from the first to the longest, each randomized by half, so that the clients of a cluster
// that elects a leader do not all retry at the same moment.
export const firstPauseMs = 50;
export const longestPauseMs = 1000;
const growth = 1.5;

/** Methods that would do something else when they are repeated: make another token, or find the secret spent. */
const unrepeatable = new Set(["Bootstrap", "CreateToken", "RotateToken"].map((m) => "quorate.admin.v1.AccessService." + m));

/** The pauses between attempts. */
export class Pauses {
  #interval = firstPauseMs;

  /**
   * The next pause, at least as long as the last failure asked for. That is lengthened by up to half, so that the
   * callers that a server refused do not all return at the same moment.
   */
  next(last: unknown): number {
    const pause = spread(this.#interval, 0.5);
    this.#interval = Math.min(this.#interval * growth, longestPauseMs);
    const asked = retryAfterMs(last);
    return asked ? Math.max(pause, asked * (1 + Math.random() / 2)) : pause;
  }
}

/** Controls the attempts of a call, and records when the last one was sent. */
export interface Attempt {
  /** If set, one attempt is made only, which may take so long. */
  timeoutMs?: number;
  /** When the last attempt was sent, on now(). */
  sentAt: number;
}

export const attemptKey = createContextKey<Attempt | undefined>(undefined, { description: "attempts of a call" });

/** What one attempt needs. */
export interface Sending {
  index: number;
  signal: AbortSignal | undefined;
  timeoutMs: number;
  header: HeadersInit | undefined;
  contextValues: ContextValues | undefined;
}

/** Makes one attempt of one call. */
export type Send = <I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>, message: MessageShape<I>, sending: Sending,
) => Promise<UnaryResponse<I, O>>;

export interface TransportSettings {
  servers: Servers;
  transports: Transport[];
  token: (() => string | Promise<string>) | undefined;
  attemptTimeoutMs: number;
  patienceMs: number;
  retries: boolean;
  namespace: string;
  notice: (failure: unknown) => void;
}

/** The transport of a cluster: each call goes to one server after the other until one answers. */
export class ClusterTransport implements Transport {
  /** Makes the attempts; the joiner takes its place. */
  send: Send = (method, message, sending) => this.sendAlone(method, message, sending);

  constructor(readonly settings: TransportSettings) {}

  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, signal: AbortSignal | undefined, timeoutMs: number | undefined,
    header: HeadersInit | undefined, input: MessageInitShape<I>, contextValues?: ContextValues,
  ): Promise<UnaryResponse<I, O>> {
    const message = withIDs(method, input, this.settings.namespace);
    const attempt: Attempt = contextValues?.get(attemptKey) ?? { sentAt: 0 };
    const until = now() + (timeoutMs ?? this.settings.patienceMs);
    const call = () => this.#attempt(method, message, until, attempt, { signal, header, contextValues });
    if (attempt.timeoutMs !== undefined || !this.settings.retries) {
      return call();
    }
    return this.#untilAnswered(`${method.parent.typeName}.${method.name}`, call, until, signal);
  }

  async #untilAnswered<T>(
    name: string, call: () => Promise<T>, until: number, signal: AbortSignal | undefined,
  ): Promise<T> {
    let failure: unknown;
    const pauses = new Pauses();
    const refusing = new Set<number>();
    for (let attempts = 1; ; attempts++) {
      const index = this.settings.servers.current;
      try {
        return await call();
      } catch (e) {
        if (signal?.aborted || !isTransient(e) || (unrepeatable.has(name) && mayBeDone(e))) {
          throw e;
        }
        // A failure after which a write may have been carried out takes precedence.
        failure = failure !== undefined && mayBeDone(failure) && !mayBeDone(e) ? failure : e;
        if (isTLSFailure(e) && refusing.add(index).size === this.settings.servers.urls.length) {
          throw e;
        }
        const pause = pauses.next(e);
        if (now() + pause >= until) {
          (failure as Error).message += ` (after ${attempts} attempts)`;
          throw failure;
        }
        this.settings.notice(e);
        await sleep(pause, signal).catch(() => {
          throw new ConnectError("the call was cancelled", Code.Canceled, undefined, undefined, signal?.reason);
        });
      }
    }
  }

  /** Makes one attempt at the current server, and moves on to the next server if that fails. */
  async #attempt<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, message: MessageShape<I>, until: number, attempt: Attempt,
    rest: Pick<Sending, "signal" | "header" | "contextValues">,
  ): Promise<UnaryResponse<I, O>> {
    const { servers, attemptTimeoutMs } = this.settings;
    const index = servers.current;
    // A request that asks the server to wait before it answers extends the limit by that time.
    const poll = Number((message as { pollMs?: bigint }).pollMs ?? 0n);
    const limit = attempt.timeoutMs ?? attemptTimeoutMs + poll;
    attempt.sentAt = now();
    const left = until - attempt.sentAt;
    try {
      const answer = await this.send(method, message,
        { ...rest, index, timeoutMs: Math.max(Math.min(limit, left), 1) });
      checkID(message, answer.message);
      return answer;
    } catch (e) {
      const wasCut = rest.signal?.aborted || (e instanceof ConnectError && e.code === Code.DeadlineExceeded
        && left <= limit);
      if (isTransient(e) && !wasCut) {
        servers.advanceFrom(index);
      }
      throw e;
    }
  }

  /**
   * Makes one attempt of one call. A server that refuses a token which its source has replaced meanwhile is asked once
   * more: such a call was not carried out.
   */
  async sendAlone<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>, message: MessageShape<I>, sending: Sending,
  ): Promise<UnaryResponse<I, O>> {
    const once = (header: Headers) => this.settings.transports[sending.index]!
      .unary(method, sending.signal, Math.ceil(sending.timeoutMs), header, message as MessageInitShape<I>,
        sending.contextValues)
      .catch((e: unknown) => {
        throw networkFailure(e);
      });
    const token = await this.#token();
    try {
      return await once(withToken(sending.header, token));
    } catch (e) {
      if (!(token !== undefined && e instanceof ConnectError && e.code === Code.Unauthenticated)) {
        throw e;
      }
      const newer = await this.#token();
      if (newer === token) {
        throw e;
      }
      return await once(withToken(sending.header, newer));
    }
  }

  /** The token of now; undefined if calls carry none. */
  async #token(): Promise<string | undefined> {
    if (this.settings.token === undefined) {
      return undefined;
    }
    let token: string;
    try {
      token = await this.settings.token();
    } catch (cause) {
      throw new ConnectError("no token", Code.Unauthenticated, undefined, undefined, cause);
    }
    if (!/^[!-~]{1,8192}$/.test(token)) {
      throw new ConnectError("the token is empty, longer than 8192 bytes, or has blanks or characters that are not " +
        "ASCII: it must be alone", Code.Unauthenticated);
    }
    return token;
  }

  /** Opens a stream at the current server. It is not resumed; watches are. */
  async stream<I extends DescMessage, O extends DescMessage>(
    method: DescMethodStreaming<I, O>, signal: AbortSignal | undefined, timeoutMs: number | undefined,
    header: HeadersInit | undefined, input: AsyncIterable<MessageInitShape<I>>, contextValues?: ContextValues,
  ): Promise<StreamResponse<I, O>> {
    const token = await this.#token();
    const transport = this.settings.transports[this.settings.servers.current]!;
    try {
      const opened = await transport.stream(method, signal, timeoutMs ?? 0, withToken(header, token), input,
        contextValues);
      return { ...opened, message: withNetworkFailures(opened.message) };
    } catch (e) {
      throw networkFailure(e);
    }
  }
}

async function* withNetworkFailures<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (e) {
    throw networkFailure(e);
  }
}

/**
 * Makes an answer that is about another allocation than the request a broken connection: what something else reads from
 * too, or a proxy that mixes answers up, must not look like a grant.
 */
function checkID(request: Message, answer: Message): void {
  const asked = (request as { id?: unknown }).id;
  const told = (answer as { allocation?: { id?: unknown } }).allocation?.id;
  if (typeof asked === "string" && asked !== "" && typeof told === "string" && told !== "" && told !== asked) {
    throw new ConnectError(`the answer is about "${told}" instead of "${asked}": something else reads from this ` +
      "connection", Code.Unavailable);
  }
}

function withToken(header: HeadersInit | undefined, token: string | undefined): Headers {
  const headers = new Headers(header);
  if (token !== undefined && !headers.has("Authorization")) {
    headers.set("Authorization", "Bearer " + token);
  }
  return headers;
}

/** The codes of answers without the JSON of a server; every other status is unknown. docs/clients.md has the table. */
const gatewayCodes: Record<number, Code> = {
  400: Code.Internal, 401: Code.Unauthenticated, 403: Code.PermissionDenied, 404: Code.Unimplemented,
  405: Code.Unimplemented, 408: Code.Unavailable, 413: Code.InvalidArgument, 414: Code.InvalidArgument,
  425: Code.Unavailable, 429: Code.Unavailable, 431: Code.InvalidArgument, 501: Code.Unimplemented,
  502: Code.Unavailable, 503: Code.Unavailable, 504: Code.Unavailable,
};

/** The failure that an answer of a gateway stands for. */
function gatewayFailure(status: number, error: ConnectError): ConnectError {
  return new ConnectError(`HTTP ${status} without an answer of a server`, gatewayCodes[status] ?? Code.Unknown,
    error.metadata, undefined, new GatewayError(status));
}

/**
 * Fetches, and hides the JSON of a gateway, which has no code of Connect: the transport would take it for the error of
 * a server.
 */
export async function fetchAnswer(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  if (response.status === 200 || !/json/.test(response.headers.get("Content-Type") ?? "")) {
    return response;
  }
  const text = await response.text();
  const headers = new Headers(response.headers);
  headers.delete("Content-Encoding"); // fetch has unpacked it
  if (!hasCode(text)) {
    headers.set("Content-Type", "text/plain");
  }
  return new Response(text, { status: response.status, headers });
}

function hasCode(text: string): boolean {
  try {
    const said = JSON.parse(text) as { code?: unknown } | null;
    return typeof said?.code === "string" && codeFromString(said.code) !== undefined;
  } catch {
    return false;
  }
}

/** The codes of failures that are no answers: of fetch, and of connections that break under the transport of Node. */
const networkCodes = [Code.Unknown, Code.Internal, Code.Aborted];

/** What the transports of fetch and of Node say, with any code, of a stream that was cut off before its end. */
const cutStream = /missing EndStreamResponse|incomplete envelope|bytes in enveloped message/;

/** Makes a failure of the network an error with the code unavailable: it is not an answer of a server. */
function networkFailure(e: unknown): ConnectError {
  const error = ConnectError.from(e);
  const status = /^HTTP (\d{3})$/.exec(error.rawMessage)?.[1];
  if (status !== undefined && !error.isWireError) {
    return gatewayFailure(Number(status), error);
  }
  const isCut = !error.isWireError && cutStream.test(error.rawMessage);
  if (!isCut && (error.cause === undefined || !networkCodes.includes(error.code))) {
    return error;
  }
  const inner = error.cause instanceof Error && error.cause.cause instanceof Error ? `: ${error.cause.cause.message}`
    : "";
  return new ConnectError(error.rawMessage + inner, Code.Unavailable, undefined, undefined, error.cause ?? error);
}
