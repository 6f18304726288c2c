// Ids that make calls safe to repeat, and their namespace.

import { clone, create, type DescMessage, type DescMethodUnary, type MessageInitShape,
  type MessageShape } from "@bufbuild/protobuf";
import { AllocateRequestSchema, type AllocateRequest, type BatchAllocateRequest,
  type ExplainRequest } from "./gen/quorate/v1/allocation_pb.js";

/** A new id for an allocation or a change. */
export function newID(): string {
  // randomUUID is missing on pages that were not loaded by https.
  if (typeof crypto.randomUUID === "function") {
    return crypto.randomUUID();
  }
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * The message of a call, with the ids that its caller left empty, so that all attempts carry the same: the id of an
 * allocation, and the request id of a change of configuration. Ids of
 * allocations without a namespace are in the given one; an empty one is that of the caller. The caller's message is
 * not changed.
 */
export function withIDs<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>, input: MessageInitShape<I>, namespace: string,
): MessageShape<I> {
  // create returns a message as it is
  const message = clone(method.input, create(method.input, input)) as MessageShape<I>;
  switch (method.input.typeName) {
    case "quorate.v1.AllocateRequest":
      addID(message as unknown as AllocateRequest);
      break;
    case "quorate.v1.BatchAllocateRequest":
      (message as unknown as BatchAllocateRequest).requests.forEach(addID);
      break;
    case "quorate.v1.ExplainRequest": {
      const { question } = message as unknown as ExplainRequest;
      if (question.case === "request") {
        addID(question.value);
      }
      break;
    }
    default: {
      const change = message as unknown as { requestId?: unknown };
      if (change.requestId === "") {
        change.requestId = newID();
      }
    }
  }
  addNamespace(message, namespace);
  return message;
}

/** What may name allocations: by itself, or in its elements. */
interface Naming {
  namespace?: string;
  id?: unknown;
  requests?: Naming[];
  renewals?: Naming[];
  allocations?: Naming[];
  question?: { case?: string; value?: unknown };
}

/** Adds the namespace of the client to ids that have none. */
export function addNamespace(message: object, namespace: string): void {
  const naming = message as Naming;
  if (!namespace) {
    return;
  }
  const { question } = naming;
  if (naming.namespace === "" && (naming.id || question?.case === "id")) {
    naming.namespace = namespace;
  }
  if (question?.case === "request") {
    addNamespace(question.value as object, namespace);
  }
  for (const element of [naming.requests, naming.renewals, naming.allocations].flatMap((list) => list ?? [])) {
    addNamespace(element, namespace);
  }
}

function addID(request: AllocateRequest): void {
  request.id ||= newID();
}

/** A request as the caller wrote it, complete and with an id. */
export function prepareRequest(
  input: MessageInitShape<typeof AllocateRequestSchema>, namespace: string,
): AllocateRequest {
  const request = clone(AllocateRequestSchema, create(AllocateRequestSchema, input));
  addID(request);
  addNamespace(request, namespace);
  return request;
}
