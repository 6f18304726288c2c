// A request that was denied and is still remembered.
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { InTheWay } from "../components/in_the_way";
import type { Named } from "../requests/name";
import { RemedyNote } from "../components/remedy";
import { FailureNote } from "../components/states";
import { Instant } from "../components/time";

/** Denied shows why the request of an id was denied, or that the id is unknown. */
export function Denied({ of: { namespace, id } }: { of: Named }) {
  const read = useRead(`explain ${namespace} ${id}`, { usage: true, configuration: true }, (fresh, signal) =>
    api.allocations.explain({ namespace, question: { case: "id", value: id }, read: fresh }, { signal }),
  );
  const decision = read.data?.decision;
  return (
    <>
      {read.loading && <p class="quiet">Reading…</p>}
      {read.failure && <FailureNote failure={read.failure} again={read.again} />}
      {decision && (
        <section>
          <h2>
            Denied <Instant at={read.data?.decidedAt} />
          </h2>
          <InTheWay decision={decision} />
          {decision.remedy ? (
            <RemedyNote decision={decision} />
          ) : (
            <p class="quiet">The request may fit by now, or be refused for another reason.</p>
          )}
        </section>
      )}
    </>
  );
}
