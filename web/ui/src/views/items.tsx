// Named items: how many are in each state, which one is whose, and how that was over the last day.
import type { ItemCount } from "#gen/item_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { filter } from "../components/filters";
import { TreePicker } from "../components/pickers";
import { Answer, Empty } from "../components/states";
import { StateBar } from "../items/state_bar";
import { totalOf } from "../items/cell";
import { address, setQuery } from "../router";
import { ItemResource } from "./items_resource";

/** Items lists itemized resources, or shows the one that the address names. */
export function Items() {
  const tree = filter("tree");
  const resource = tree && filter("resource");
  const counts = useRead(`count items ${tree}`, { tree: tree || undefined, items: true, queue: true }, (read, signal) =>
    api.items.countItems({ tree, read }, { signal }),
  );
  const clear = { resource: undefined, state: undefined, owner: undefined, name: undefined, item: undefined };
  return (
    <>
      <h1>Items</h1>
      <form class="filters" role="search" aria-label="Items" onSubmit={(e) => e.preventDefault()}>
        <TreePicker value={tree} change={(name) => setQuery({ ...clear, tree: name })} all="All trees" />
        {tree && (
          <label>
            Resource
            <select value={resource} onChange={(e) => setQuery({ ...clear, resource: e.currentTarget.value })}>
              <option value="">All resources</option>
              {counts.data?.counts.map((c) => (
                <option key={c.resource} value={c.resource}>
                  {c.resource}
                </option>
              ))}
            </select>
          </label>
        )}
      </form>
      {!tree && counts.failure?.kind === "forbidden" ? (
        <Empty>Choose a tree: the items of all trees are shown to those with the right usage.read on the cluster.</Empty>
      ) : (
      <Answer read={counts}>
        {({ counts: all }) => {
          if (!resource) return <Resources counts={all} />;
          const count = all.find((c) => c.tree === tree && c.resource === resource);
          return count ? (
            <ItemResource key={`${tree} ${resource}`} count={count} />
          ) : (
            <Empty>
              Tree <bdi>{tree}</bdi> has no items of <bdi>{resource}</bdi>, or you may not see them.
            </Empty>
          );
        }}
      </Answer>
      )}
    </>
  );
}

function Resources({ counts }: { counts: ItemCount[] }) {
  if (!counts.length) return <Empty>No resource with named items is configured here.</Empty>;
  return (
    <div class="cards">
      {counts.map((c) => (
        <section class="card" key={`${c.tree} ${c.resource}`}>
          <h2>
            <a href={address("items", { tree: c.tree, resource: c.resource })}>
              <bdi>
                {c.tree}: {c.resource}
              </bdi>
            </a>
          </h2>
          <StateBar count={c} />
          <p class="quiet">
            {totalOf(c) === 1n ? "1 item" : `${totalOf(c)} items`}
            {c.waiting > 0n && `, ${c.waiting} requests wait`}
          </p>
        </section>
      ))}
    </div>
  );
}
