// One waiting request: where it is in the queue, what is in its way, who, and what would help.
import type { Allocation } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { InTheWay } from "../components/in_the_way";
import { RemedyNote } from "../components/remedy";
import { Answer } from "../components/states";
import { Remaining } from "../components/time";
import { alternativesOf, lineText, waitingOf, type Asked } from "../requests/allocation";
import { nameKey, type Named } from "../requests/name";

/** positionsOf are the positions of a request, one for each of its alternatives. */
export function positionsOf(request: Allocation): Pick<Asked, "alternative" | "position" | "line">[] {
  const resize = request.resize?.waiting;
  const all = resize ? [{ alternative: 0, position: resize.position, line: resize.line }] : alternativesOf(request);
  return all.filter((a) => a.position > 0n);
}

/** Positions says where a request is in the queue, for each of its alternatives. */
export function Positions({ request }: { request: Allocation }) {
  return (
    <p class="position">
      {positionsOf(request).map((a) => (
        <span key={a.alternative}>
          Position {String(a.position)}
          {a.line && (
            <>
              {" "}
              for <bdi>{lineText(a.line)}</bdi>
            </>
          )}
          {a.alternative > 0 && ` (alternative ${a.alternative})`}
        </span>
      ))}
    </p>
  );
}

/** Explained is what is in the way of a waiting request, who, and what would help. */
export function Explained({ of }: { of: Named }) {
  const { namespace, id } = of;
  const explained = useRead(`explain ${namespace} ${id}`, { queue: true, usage: true }, (read, signal) =>
    api.allocations.explain({ namespace, question: { case: "id", value: id }, read }, { signal }),
  );
  return (
    <Answer read={explained}>
      {(e) =>
        e.decision && (
          <>
            <CertainBy of={of} />
            <InTheWay decision={e.decision} />
            <RemedyNote decision={e.decision} />
          </>
        )
      }
    </Answer>
  );
}

/** CertainBy says when a request is granted at the latest if nothing else changes. The server refuses it in large clusters. */
export function CertainBy({ of: { namespace, id }, bare }: { of: Named; bare?: boolean }) {
  const read = useRead(`certain by ${nameKey({ namespace, id })}`, { queue: true }, async (fresh, signal) => {
    const asked = { namespace, question: { case: "id", value: id }, certainBy: true, read: fresh } as const;
    const answer = await api.allocations.explain(asked, { signal });
    return { at: (answer.allocation && waitingOf(answer.allocation)?.certainByLedgerMs) ?? 0n, read: answer.read };
  });
  if (!read.data) return null;
  const { at } = read.data;
  if (bare) return at ? <>in <Remaining ledgerMs={at} /></> : <span class="quiet">not known</span>;
  return (
    <p class="quiet">
      {at ? (
        <>
          Granted at the latest in <Remaining ledgerMs={at} />, if nothing else changes.
        </>
      ) : (
        "It is not known when it is granted: something in its way has no known end."
      )}
    </p>
  );
}
