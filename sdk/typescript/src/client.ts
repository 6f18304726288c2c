// The client of a cluster.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Client as ServiceClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { Acquisition, type AcquireOptions } from "./acquire.js";
import { joinCalls } from "./join.js";
import type { Lease } from "./lease.js";
import { Renewer } from "./renewer.js";
import { Servers } from "./servers.js";
import { ClusterTransport, fetchAnswer, type Send } from "./transport.js";
import * as admin from "./admin.js";
import * as v1 from "./v1.js";
import * as v1beta1 from "./v1beta1.js";
import { watchEvents, watchChanges, type WatchOptions } from "./watch.js";

export interface ClientOptions {
  /**
   * A token, or a function that returns one and is asked at each attempt. If a server refuses a token that the function
   * has replaced meanwhile, the call is repeated once with the new one.
   */
  token?: string | (() => string | Promise<string>) | undefined;
  /** Also sends the token over http to other machines, where the network can read it. */
  insecureToken?: boolean | undefined;
  /** Bounds one attempt at one server, so that a server that hangs does not use up the time of the call; 5 seconds. */
  attemptTimeoutMs?: number | undefined;
  /** Bounds a call without a timeout of its own, with all its attempts and pauses; 30 seconds. */
  patienceMs?: number | undefined;
  /** False makes one attempt at each call, for callers with retries of their own. Renewals are retried nevertheless. */
  retries?: boolean | undefined;
  /** False sends every call on its own; otherwise concurrent calls of allocate, release and renew are joined. */
  join?: boolean | undefined;
  /**
   * The namespace of ids in requests without one. The default is that of the caller: its user, or "default" without a
   * credential.
   */
  namespace?: string | undefined;
  /** Is called with each failure that is followed by a retry. */
  notice?: ((failure: unknown) => void) | undefined;
  /**
   * Makes the transport of one server, such as createConnectTransport of @connectrpc/connect-node with certificates.
   * The default uses fetch with JSON, and the authorities of the platform.
   */
  transport?: ((baseUrl: string) => Transport) | undefined;
}

/**
 * The client of one cluster. It fails over between servers, and retries calls that were not answered.
 *
 * Retries are safe, for writes too: an allocation has an id and a change of configuration a request id, and the client
 * makes the one that the caller leaves empty, once for a call and all its attempts. An answer may therefore say that it
 * is repeated although the caller asked once: the answer to an earlier attempt was lost.
 *
 * Calls reject with the ConnectError of the server; see decisionOf, problemOf and mayBeDone.
 */
export class Client {
  /** Grants, releases and shows allocations. */
  readonly allocations: ServiceClient<typeof v1.AllocationService>;
  /** Reads and changes the configuration, and reads usage. */
  readonly trees: ServiceClient<typeof v1.TreeService>;
  /** Shows, restores and parses whole configurations, and lists their history. */
  readonly configuration: ServiceClient<typeof admin.ConfigurationService>;
  /** Puts nodes on hold. */
  readonly cordons: ServiceClient<typeof admin.CordonService>;
  /** Says who the caller is, and what it may do. */
  readonly identity: ServiceClient<typeof v1.IdentityService>;
  /** Tells what happens; watch is the convenient way to follow it. */
  readonly events: ServiceClient<typeof v1.EventService>;
  /** Lists the items of itemized resources and changes items that are not held. */
  readonly items: ServiceClient<typeof v1.ItemService>;
  /**
   * Shows and changes who may do what. The calls that make tokens are repeated only while it is certain that they were
   * not carried out.
   */
  readonly access: ServiceClient<typeof admin.AccessService>;
  /** Shows who changed what. */
  readonly audit: ServiceClient<typeof admin.AuditService>;
  /** Asks for limits, and decides about such requests. */
  readonly requests: ServiceClient<typeof v1beta1.LimitRequestService>;
  /** Configures where the cluster delivers its events. */
  readonly webhooks: ServiceClient<typeof v1beta1.WebhookService>;
  /** Reads what happened in the last 24 hours, as recorded by the server that answers. */
  readonly activity: ServiceClient<typeof v1beta1.ActivityService>;
  /** Tells what to read again; watchChanges is the convenient way to use it. */
  readonly changes: ServiceClient<typeof v1.ChangeService>;
  /** Reads the status of the cluster and changes its members. */
  readonly cluster: ServiceClient<typeof admin.ClusterService>;
  /** Reads diagnostics of servers. */
  readonly debug: ServiceClient<typeof admin.DebugService>;

  /** For use by this package. */
  readonly servers: Servers;
  /** For use by this package. */
  readonly renewer: Renewer;
  /** The namespace of ids in requests without one; empty for that of the caller. */
  readonly namespace: string;
  /** For use by this package. */
  readonly notice: (failure: unknown) => void;
  /** For use by this package: tokens may be replaced. */
  readonly hasTokenSource: boolean;
  readonly attemptTimeoutMs: number;
  readonly patienceMs: number;

  /**
   * Makes a client of the cluster that the given servers belong to: addresses such as "10.0.0.1:7101", or URLs. One
   * suffices, because every node forwards to the leader; with more the client can fail over. It calls the first server
   * until that fails, and then the next one that answers. In a browser, name servers of the page's own origin, or set
   * cors-origin of the servers.
   */
  constructor(servers: readonly string[], options: ClientOptions = {}) {
    this.servers = new Servers(servers);
    this.attemptTimeoutMs = options.attemptTimeoutMs ?? 5000;
    this.patienceMs = options.patienceMs ?? 30_000;
    if (!(this.attemptTimeoutMs > 0 && this.patienceMs > 0)) {
      throw new TypeError("attemptTimeoutMs and patienceMs must be positive");
    }
    const { token } = options;
    this.hasTokenSource = typeof token === "function";
    if (token !== undefined) {
      this.servers.checkTokens(options.insecureToken ?? false);
    }
    this.namespace = options.namespace ?? "";
    this.notice = options.notice ?? (() => undefined);
    const make = options.transport ?? ((baseUrl) => createConnectTransport({ baseUrl, fetch: fetchAnswer }));
    const transport = new ClusterTransport({
      servers: this.servers,
      transports: this.servers.urls.map(make),
      token: typeof token === "string" ? () => token : token,
      attemptTimeoutMs: this.attemptTimeoutMs,
      patienceMs: this.patienceMs,
      retries: options.retries ?? true,
      namespace: this.namespace,
      notice: this.notice,
    });
    if (options.join ?? true) {
      const alone: Send = (method, message, sending) => transport.sendAlone(method, message, sending);
      transport.send = joinCalls(alone);
    }
    this.allocations = createClient(v1.AllocationService, transport);
    this.trees = createClient(v1.TreeService, transport);
    this.configuration = createClient(admin.ConfigurationService, transport);
    this.cordons = createClient(admin.CordonService, transport);
    this.identity = createClient(v1.IdentityService, transport);
    this.events = createClient(v1.EventService, transport);
    this.items = createClient(v1.ItemService, transport);
    this.access = createClient(admin.AccessService, transport);
    this.audit = createClient(admin.AuditService, transport);
    this.requests = createClient(v1beta1.LimitRequestService, transport);
    this.webhooks = createClient(v1beta1.WebhookService, transport);
    this.activity = createClient(v1beta1.ActivityService, transport);
    this.changes = createClient(v1.ChangeService, transport);
    this.cluster = createClient(admin.ClusterService, transport);
    this.debug = createClient(admin.DebugService, transport);
    this.renewer = new Renewer(this);
  }

  /**
   * Requests an allocation and renews it in the background until it is released or lost.
   *
   * A request without a mode waits in the queue until it is granted, timeoutMs have passed or signal is aborted. It
   * keeps its id and its position when servers restart or the client fails over. If the caller stops waiting, the
   * request leaves the queue. With Mode.REJECT or Mode.FORCE it does not wait. If neither the request nor its items and
   * trees have a TTL, the allocation is held until it is released, and nothing is renewed.
   *
   * Rejects with a DeniedError if the request can never fit or may not wait, a TimedOutError if its time to wait is
   * over, an UnavailableError if no server answers, a LeaseLostError if the request ended while it waited, and a
   * ConnectError for any other answer and, with the code canceled, for the signal.
   */
  async acquire(
    request: MessageInitShape<typeof v1.AllocateRequestSchema>, options: AcquireOptions = {},
  ): Promise<Lease> {
    return new Acquisition(this, request, options).lease();
  }

  /** Requests an allocation and waits for it as acquire does, with the same errors. The caller renews it. */
  async wait(
    request: MessageInitShape<typeof v1.AllocateRequestSchema>, options: AcquireOptions = {},
  ): Promise<v1.AllocateResponse> {
    return (await new Acquisition(this, request, options).wait()).answer;
  }

  /**
   * The changes of what the request watches, after its position, in order. If a server fails, or a token ends that was
   * replaced, it continues at the next server from the same position. Throws a ConnectError with the code out of range
   * if the servers no longer have the changes after that position: list the allocations, and watch from the index of
   * that answer. Throws an UnavailableError if no server answered for patienceMs.
   */
  watch(
    request: MessageInitShape<typeof v1.WatchEventsRequestSchema> = {}, options: WatchOptions = {},
  ): AsyncGenerator<v1.WatchEventsResponse, void, undefined> {
    return watchEvents(this, request, { notice: this.notice, ...options });
  }

  /**
   * What may have changed, heartbeats included; the first message comes at once. Read what is shown again with
   * consistency stale and the index of the message as minIndex. It continues for as long as it takes; other errors are
   * refusals of a server.
   */
  watchChanges(
    request: MessageInitShape<typeof v1.WatchChangesRequestSchema> = {}, options: WatchOptions = {},
  ): AsyncGenerator<v1.WatchChangesResponse, void, undefined> {
    return watchChanges(this, request, { notice: this.notice, ...options });
  }
}
