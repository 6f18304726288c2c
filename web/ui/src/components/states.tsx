// What a view shows in place of an answer: that it is being fetched, that there is nothing, or why it failed.
import type { ComponentChildren } from "preact";
import type { Failure } from "../api/failure";
import type { Read } from "../api/read";
import { SignIn } from "./sign_in";

/** Answer shows the data of a read; a failure stands above the data of an earlier attempt. */
export function Answer<T>({ read, children }: { read: Read<T>; children: (data: T) => ComponentChildren }) {
  return (
    <>
      {read.failure && <FailureNote failure={read.failure} again={read.again} />}
      {read.loading && <Skeleton />}
      {read.data && children(read.data)}
    </>
  );
}

/** Skeleton stands where an answer will be. */
export function Skeleton() {
  return (
    <div class="skeleton" aria-busy="true">
      <span class="hidden">Reading…</span>
      <i />
      <i />
      <i />
    </div>
  );
}

/** FailureNote says why a call failed, what is missing and what to do. */
export function FailureNote({ failure, again }: { failure: Failure; again?: () => void }) {
  if (failure.kind === "signed-out") return <SignIn why={failure.text} />;
  const verb = failure.problem?.missingVerb;
  const p = failure.problem;
  const at = p?.missingTree ? [p.missingTree, p.missingNode].filter(Boolean).join(":") : "the cluster";
  return (
    <div class="note note-problem" role="alert">
      <p>{failure.text}</p>
      {verb && (
        <p>
          The missing right is <code>{verb}</code> at <bdi>{at}</bdi>. See who can give it:{" "}
          <code>quorate binding list {verb}</code>
        </p>
      )}
      {failure.kind === "unreachable" && again && <button onClick={again}>Try again</button>}
    </div>
  );
}

/** Empty says that a list has nothing, and what that means. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="quiet empty">{children}</p>;
}
