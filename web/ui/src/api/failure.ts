// What went wrong with a call, in words for people.
import { Code, ConnectError } from "@connectrpc/connect";
import { ProblemSchema, type Problem } from "#gen/decision_pb";

/** Failure is an error of a call. */
export interface Failure {
  kind: "signed-out" | "forbidden" | "missing" | "unreachable" | "invalid";
  /** The sentence of the server, or why there was none. */
  text: string;
  problem?: Problem;
}

/** toFailure says what an error of a call means for the user. */
export function toFailure(thrown: unknown): Failure {
  const error = ConnectError.from(thrown);
  const problem = error.findDetails(ProblemSchema)[0];
  return { kind: kindOf(error.code), text: error.rawMessage || "the call failed", problem };
}

function kindOf(code: Code): Failure["kind"] {
  switch (code) {
    case Code.Unauthenticated:
      return "signed-out";
    case Code.PermissionDenied:
      return "forbidden";
    case Code.NotFound:
      return "missing";
    case Code.InvalidArgument:
    case Code.FailedPrecondition:
    case Code.AlreadyExists:
    case Code.Aborted:
    case Code.OutOfRange:
      return "invalid";
    default:
      return "unreachable";
  }
}
