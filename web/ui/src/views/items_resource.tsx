// The items of one resource as a grid of cells.
import type { ItemCount } from "#gen/item_pb";
import { useRead } from "../api/read";
import { filter, useTypedFilter } from "../components/filters";
import { Answer, Empty } from "../components/states";
import { optionText } from "../format";
import { lookOf, letterOf, statesOf, totalOf } from "../items/cell";
import { ItemDay } from "../items/day";
import { ItemDetails } from "../items/details";
import { ItemGrid } from "../items/grid";
import { listItems, mostItems } from "../items/list";
import { ResetButton } from "../items/reset";
import { setQuery } from "../router";

/** ItemResource shows one resource. */
export function ItemResource({ count }: { count: ItemCount }) {
  const state = filter("state");
  const owner = filter("owner");
  const name = filter("name");
  const many = totalOf(count) > mostItems;
  return (
    <>
      <States count={count} state={state} />
      <Filters count={count} owner={owner} many={many} />
      {many && !state && !owner && !name ? (
        <Empty>
          There are {String(totalOf(count))} items. Choose a state or a user, or write the whole name of an item, to see
          them.
        </Empty>
      ) : (
        <Cells count={count} {...{ state, owner, name, many }} />
      )}
      <ItemDay tree={count.tree} resource={count.resource} />
    </>
  );
}

function States({ count, state }: { count: ItemCount; state: string }) {
  return (
    <div class="states" role="group" aria-label="States">
      <button aria-pressed={!state} onClick={() => setQuery({ state: undefined })}>
        All {String(totalOf(count))}
      </button>
      {statesOf(count).map(([name, n]) => (
        <button key={name} aria-pressed={state === name} onClick={() => setQuery({ state: name })}>
          <span class={`cell small look-${lookOf(name)}`} aria-hidden="true">
            {letterOf(name)}
          </span>
          {String(n)} <bdi>{name}</bdi>
        </button>
      ))}
      {count.waiting > 0n && <span class="quiet">{String(count.waiting)} requests wait</span>}
      <ResetButton key={state} count={count} state={state} />
    </div>
  );
}

function Filters({ count, owner, many }: { count: ItemCount; owner: string; many: boolean }) {
  const [name, typeName] = useTypedFilter("name");
  const owners = Object.keys(count.owners).filter(Boolean).sort();
  return (
    <div class="filters">
      <label>
        {many ? "Name" : "Name contains"}
        <input type="search" value={name} maxLength={253} onInput={(e) => typeName(e.currentTarget.value)} />
      </label>
      {(owners.length > 0 || owner) && (
        <label>
          Held for
          <select value={owner} onChange={(e) => setQuery({ owner: e.currentTarget.value })}>
            <option value="">Any owner or none</option>
            {owner && !owners.includes(owner) && <option value={owner}>{optionText(owner)}</option>}
            {owners.map((o) => (
              <option key={o} value={o}>
                {optionText(o)} ({String(count.owners[o])})
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

interface CellsProps {
  count: ItemCount;
  state: string;
  owner: string;
  name: string;
  /** There are too many items to read all: the server selects those with the name. */
  many: boolean;
}

function Cells({ count, state, owner, name, many }: CellsProps) {
  const { tree, resource } = count;
  const asked = { tree, resource, state, owner, name: many ? name : "" };
  const read = useRead(`items ${Object.values(asked).join("\n")}`, { tree, items: true }, (fresh, signal) =>
    listItems(asked, fresh, signal),
  );
  const chosen = filter("item");
  const choose = (item: string) => setQuery({ item });
  return (
    <Answer read={read}>
      {({ items: all, more }) => {
        const items = all.filter((i) => i.name?.name.includes(name));
        const item = items.find((i) => i.name?.name === chosen);
        if (!items.length) return <Empty>No item is selected by these filters now.</Empty>;
        return (
          <div class="items">
            <ItemGrid items={items} chosen={chosen} choose={choose} />
            {item ? (
              <ItemDetails item={item} states={statesOf(count).map(([name]) => name)} again={read.again} />
            ) : (
              <p class="quiet item-details">Choose an item to see who has it and for how long.</p>
            )}
            {more && (
              <p class="quiet">These are the first {mostItems} by name. Choose a state or a user to see others.</p>
            )}
          </div>
        );
      }}
    </Answer>
  );
}
