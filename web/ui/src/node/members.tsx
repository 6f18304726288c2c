// The members of a group at a node, with what each of them uses there.
import { HolderKind } from "#gen/decision_pb";
import { useState } from "preact/hooks";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { amountText } from "../api/units";
import { Answer, Empty } from "../components/states";

interface MembersProps {
  tree: string;
  node: string;
  group: string;
  /** How many users of the tree are counted for the group. */
  count: number;
}

/** Members opens to the users who hold something at the node that is counted for a group. */
export function Members(props: MembersProps) {
  const [open, setOpen] = useState(false);
  if (!props.count) return null;
  return (
    <>
      <button class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Hide members" : "Show members"}
      </button>
      {open && <MemberList {...props} />}
    </>
  );
}

function MemberList({ tree, node, group }: MembersProps) {
  const read = useRead(`members ${tree} ${node} ${group}`, { tree, node, usage: true }, (fresh, signal) =>
    api.trees.listPrincipals({ tree, kind: HolderKind.GROUP, name: group, read: fresh }, { signal }),
  );
  return (
    <Answer read={read}>
      {({ principals }) => {
        const at = principals[0]?.nodes.find((n) => n.node === node);
        if (!at?.members.length) return <Empty>No user holds anything for it here.</Empty>;
        return (
          <ul>
            {at.members.map((m) => (
              <li key={m.user}>
                <bdi>{m.user}</bdi>:{" "}
                {Object.keys(m.used)
                  .sort()
                  .map((name) => `${name}=${amountText(tree, name, m.used[name]!)}`)
                  .join(", ")}
              </li>
            ))}
            {at.moreMembers > 0n && <li class="quiet">and {String(at.moreMembers)} more</li>}
          </ul>
        );
      }}
    </Answer>
  );
}
