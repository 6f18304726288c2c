// Ids that make calls safe to repeat.

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
 * allocation, and the request id of a change of configuration. The caller's message is not changed.
 */
export function withIDs<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>, input: MessageInitShape<I>,
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
  return message;
}

function addID(request: AllocateRequest): void {
  request.id ||= newID();
}

/** A request as the caller wrote it, complete and with an id. */
export function prepareRequest(input: MessageInitShape<typeof AllocateRequestSchema>): AllocateRequest {
  const request = clone(AllocateRequestSchema, create(AllocateRequestSchema, input));
  addID(request);
  return request;
}
