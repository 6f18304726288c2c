// What an operator may do to the cluster: each after a dialog that says what follows.
import { Role, Seat, type Member } from "#gen/admin/cluster_pb";
import type { GetLevelResponse } from "#gen/admin/upkeep_pb";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, offersChanges } from "../api/clients";
import { useRight } from "../api/rights";
import { ConfirmDialog } from "../components/confirm";

const cluster = [{ tree: "", node: "" }];

/** useMayOperate is true if changes are offered and the user may make them. */
function useMayOperate(): boolean {
  return useRight("cluster.operate", cluster)?.allowed === true && offersChanges;
}

interface ActionProps {
  label: string;
  title: string;
  again: () => void;
  call: () => Promise<unknown>;
  children: ComponentChildren;
}

function Action({ label, title, again, call, children }: ActionProps) {
  const [open, setOpen] = useState(false);
  const carryOut = async () => {
    await call();
    again();
  };
  return (
    <>
      <button onClick={() => setOpen(true)}>{label}</button>
      {open && (
        <ConfirmDialog title={title} button={label} carryOut={carryOut} close={() => setOpen(false)}>
          {children}
        </ConfirmDialog>
      )}
    </>
  );
}

/** LeaderButton transfers the leadership to a voter. */
export function LeaderButton({ row, again }: { row: Member; again: () => void }) {
  const may = useMayOperate();
  if (!may || row.seat !== Seat.VOTER || !row.reachable || row.role !== Role.FOLLOWER) return null;
  return (
    <Action
      label="Make leader"
      title={`Make ${row.id} the leader`}
      again={again}
      call={() => api.cluster.transferLeader({ id: row.id })}
    >
      <p>
        The leadership is transferred to <bdi>{row.id}</bdi>. Requests wait for a moment meanwhile; none is lost.
      </p>
    </Action>
  );
}

/** ClusterActions are those that are about the cluster as a whole. */
export function ClusterActions({ level, again }: { level: GetLevelResponse; again: () => void }) {
  if (!useMayOperate()) return null;
  return (
    <section>
      <h2>Operate</h2>
      <div class="actions">
        <Action
          label="Compare states now"
          title="Compare the states of all members"
          again={again}
          call={() => api.cluster.checkpoint({})}
        >
          <p>
            Every member computes a digest of its state at the same index. A member whose state differs from that of the
            majority goes into quarantine and serves nothing.
          </p>
        </Action>
        {level.possible > level.level && (
          <Action
            label={`Raise to level ${level.possible}`}
            title={`Raise the feature level from ${level.level} to ${level.possible}`}
            again={again}
            call={() => api.cluster.raiseLevel({})}
          >
            <p>Servers of earlier versions cannot take part from then on. It cannot be undone.</p>
          </Action>
        )}
      </div>
    </section>
  );
}
