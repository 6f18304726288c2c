// Who may do what at a node, and by which binding.
import type { PlacedBinding } from "#gen/admin/access_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { filter } from "../components/filters";
import { NameList, NodeLink } from "../components/names";
import { Answer, Empty } from "../components/states";
import { Instant } from "../components/time";
import { setQuery } from "../router";
import { subjectText } from "./subject";

/** The rights at nodes, of internal/access/verb.go; the first is the one that most readers look for. */
const verbs = `limits.set limits.request hold hold.as hold.force hold.operate usage.read config.read holders.read data.read
  items.clean items.reset nodes.manage policy.set nodes.cordon bindings.grant`.split(/\s+/);

/** WhoCan lists the bindings that give a right at a node, the nearest first. */
export function WhoCan({ tree, node }: { tree: string; node: string }) {
  const verb = filter("verb") || verbs[0]!;
  const read = useRead(`who can ${verb} ${tree} ${node}`, { configuration: true }, (fresh, signal) =>
    api.access.whoCan({ verb, tree, node, read: fresh }, { signal }),
  );
  return (
    <>
      <div class="filters">
        <label>
          Right
          <select value={verb} onChange={(e) => setQuery({ verb: e.currentTarget.value })}>
            {verbs.map((v) => (
              <option key={v}>{v}</option>
            ))}
          </select>
        </label>
      </div>
      <Answer read={read}>
        {({ bindings }) =>
          bindings.length ? (
            <ul>
              {bindings.map((b, i) => (
                <BindingLine key={i} placed={b} />
              ))}
            </ul>
          ) : (
            <Empty>No binding that you may see gives this right here.</Empty>
          )
        }
      </Answer>
    </>
  );
}

function BindingLine({ placed: { tree, node, binding: b } }: { placed: PlacedBinding }) {
  return (
    <li>
      <NameList names={(b?.subjects ?? []).map(subjectText)} />: role <bdi>{b?.role}</bdi> at {tree ? <NodeLink tree={tree} node={node} /> : "the cluster"}
      {b?.endsAt && (
        <>
          {" "}
          until <Instant at={b.endsAt} exact />
        </>
      )}
    </li>
  );
}
