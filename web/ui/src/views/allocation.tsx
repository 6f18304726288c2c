// One allocation or waiting request.
import { AllocationState, type Allocation } from "#gen/allocation_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { AskAgainLink } from "../components/ask_again";
import { Claims } from "../components/claims";
import { defaultNamespace, nameKey, type Named } from "../requests/name";
import { Part } from "../components/part";
import { Empty, FailureNote, Skeleton } from "../components/states";
import { hasEnded, stateWord } from "../requests/allocation";
import { filter } from "../components/filters";
import { AllocationChanges } from "./allocation_changes";
import { AllocationFacts } from "./allocation_facts";
import { AllocationHistory } from "./allocation_history";
import { Denied } from "./allocation_denied";
import { Asks, InQueue } from "./allocation_waiting";

/** AllocationPage shows the allocation that the address names. */
export function AllocationPage() {
  const [id, namespace] = [filter("id"), filter("namespace")];
  if (!id) return <Empty>Name an allocation: press / and write its id.</Empty>;
  return <One key={nameKey({ namespace, id })} of={{ namespace, id }} />;
}

function One({ of }: { of: Named }) {
  const { namespace, id } = of;
  const read = useRead(`allocation ${nameKey(of)}`, { queue: true, usage: true, items: true }, (fresh, signal) =>
    api.allocations.getAllocation({ namespace, id, read: fresh }, { signal }),
  );
  const allocation = read.data?.allocation;
  const missing = read.failure?.kind === "missing" && !allocation;
  return (
    <>
      <h1>
        <bdi>{id}</bdi> {namespace && namespace !== defaultNamespace && <>of <bdi>{namespace}</bdi> </>}
        {allocation && <State allocation={allocation} />}
      </h1>
      {read.loading && <Skeleton />}
      {read.failure && !missing && <FailureNote failure={read.failure} again={read.again} />}
      {missing && <Denied of={of} />}
      {allocation && <Record allocation={allocation} changed={read.again} />}
      <AllocationHistory of={of} allocation={allocation} />
    </>
  );
}

/** State is the state of an allocation as a mark with its word. */
function State({ allocation }: { allocation: Allocation }) {
  const word = stateWord(allocation.state);
  return <span class={`state state-${word.replace(" ", "-")}`}>{word}</span>;
}

function Record({ allocation, changed }: { allocation: Allocation; changed: () => void }) {
  return (
    <>
      <AllocationChanges allocation={allocation} changed={changed} />
      <div class="columns">
        <div>
          <What allocation={allocation} />
          <Part title="Facts">
            <AllocationFacts allocation={allocation} />
          </Part>
        </div>
        <div>
          <InQueue allocation={allocation} />
          <Pairs title="Labels" pairs={allocation.labels} />
          <UserData pairs={allocation.userData} />
        </div>
      </div>
    </>
  );
}

function What({ allocation: a }: { allocation: Allocation }) {
  if (a.state === AllocationState.WAITING) return <Asks allocation={a} />;
  return (
    <>
      <Part title={hasEnded(a.state) ? "Held" : "Holds"}>
        <Claims claims={a.claims} />
        <AskAgainLink allocation={a} />
      </Part>
      {a.resize && <Asks allocation={a} />}
    </>
  );
}

function Pairs({ title, pairs }: { title: string; pairs: Record<string, string> }) {
  if (!Object.keys(pairs).length) return null;
  return (
    <Part title={title}>
      <PairList pairs={pairs} />
    </Part>
  );
}

/** User data may have secrets, so that it is shown on demand. */
function UserData({ pairs }: { pairs: Record<string, string> }) {
  const count = Object.keys(pairs).length;
  if (!count) return null;
  return (
    <Part title="User data">
      <details>
        <summary>
          Show {count} {count === 1 ? "value" : "values"}, which may be secret
        </summary>
        <PairList pairs={pairs} />
      </details>
    </Part>
  );
}

function PairList({ pairs }: { pairs: Record<string, string> }) {
  return (
    <dl class="facts">
      {Object.keys(pairs)
        .sort()
        .map((name) => (
          <div key={name}>
            <dt>
              <bdi>{name}</bdi>
            </dt>
            <dd>
              <bdi>{pairs[name]}</bdi>
            </dd>
          </div>
        ))}
    </dl>
  );
}
