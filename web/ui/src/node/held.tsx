// What is held at a node and below it.
import type { Allocation, HeldClaim } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { usePages } from "../api/pages";
import { Claims } from "../components/claims";
import { AllocationLink } from "../components/names";
import { nameKey } from "../requests/name";
import { PagedTable, type Column } from "../components/table";
import { Ago, Remaining } from "../components/time";

const pageSize = 50;

/** Held lists allocations in the order of their grants. */
export function Held({ tree, node }: { tree: string; node: string }) {
  const pages = usePages<Allocation>(`held ${tree} ${node}`, { tree, node, usage: true }, async (read, pageToken, signal) => {
    const page = await api.allocations.listAllocations({ tree, node, pageSize, pageToken, read }, { signal });
    return { rows: page.allocations, next: page.nextPageToken, read: page.read, filtered: page.filtered };
  });
  const columns: Column<Allocation>[] = [
    { title: "Allocation", cell: (a) => <AllocationLink of={a} /> },
    { title: "Holds here", cell: (a) => <Claims claims={a.claims.filter((c) => isAt(c, tree, node))} /> },
    { title: "User", cell: (a) => <bdi>{a.principal?.user}</bdi> },
    { title: "Application", cell: (a) => <bdi>{a.principal?.application}</bdi> },
    { title: "Owner", cell: (a) => <bdi>{a.owner}</bdi> },
    { title: "For", cell: (a) => <Ago ledgerMs={a.grantedLedgerMs} /> },
    { title: "Ends in", cell: (a) => <Ends allocation={a} /> },
  ];
  return (
    <PagedTable
      caption="Allocations held here"
      columns={columns}
      pages={pages}
      keyOf={nameKey}
      empty="Nothing is held here."
    />
  );
}

/** isAt is true if a claim is counted at a node or below it. */
function isAt(c: HeldClaim, tree: string, node: string): boolean {
  return c.tree === tree && (node === "" || c.placed === node || c.placed.startsWith(`${node}/`));
}

function Ends({ allocation: a }: { allocation: Allocation }) {
  const end = a.expiresLedgerMs || a.reservedUntilLedgerMs || a.endsLedgerMs;
  if (!end) return <span class="quiet">when released</span>;
  return (
    <>
      <Remaining ledgerMs={end} />
      {a.revokedBy && <strong class="usage-none"> revoked</strong>}
      {a.reservedUntilLedgerMs > 0n && <span class="quiet"> reserved</span>}
    </>
  );
}
