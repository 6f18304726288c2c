// A cell for each item. The arrow keys move between cells, as in a list box.
import type { Item } from "#gen/item_pb";
import { useRef } from "preact/hooks";
import { groupsOf, letterOf, lookOf, moveIn } from "./cell";

interface GridProps {
  items: Item[];
  chosen: string;
  choose: (name: string) => void;
}

/** From this many items on they stand in groups of those whose names begin alike. */
const grouped = 200;

/** ItemGrid draws items; one of them is chosen. */
export function ItemGrid({ items, chosen, choose }: GridProps) {
  const box = useRef<HTMLDivElement>(null);
  const at = Math.max(0, items.findIndex((i) => i.name?.name === chosen));
  const onKeyDown = (event: KeyboardEvent) => {
    const cells = [...(box.current?.querySelectorAll<HTMLElement>("[role=option]") ?? [])];
    const now = cells.indexOf(event.target as HTMLElement);
    const to = moveIn(event.key, now, cells.length, columnsOf(cells));
    if (to === undefined) return;
    event.preventDefault();
    cells[to]?.focus();
    choose(cells[to]?.dataset.name ?? "");
  };
  const groups: [string, Item[]][] = items.length < grouped ? [["", items]] : groupsOf(items);
  const first = items[at]?.name?.name;
  return (
    <div role="listbox" aria-label="Items" ref={box} onKeyDown={onKeyDown} class="item-grid">
      {groups.map(([prefix, list]) => (
        <div key={prefix} role="group" aria-label={prefix || "all items"}>
          {prefix && (
            <span class="quiet item-group" aria-hidden="true">
              <bdi>{prefix}</bdi> {list.length}
            </span>
          )}
          {list.map((i) => (
            <Cell key={i.name?.name} item={i} chosen={chosen} first={first === i.name?.name} choose={choose} />
          ))}
        </div>
      ))}
    </div>
  );
}

/** columnsOf is how many cells stand in the first row. */
function columnsOf(cells: HTMLElement[]): number {
  const top = cells[0]?.offsetTop;
  const next = cells.findIndex((c) => c.offsetTop !== top);
  return next < 1 ? cells.length : next;
}

interface CellProps {
  item: Item;
  chosen: string;
  /** It is where the focus enters the grid. */
  first: boolean;
  choose: (name: string) => void;
}

function Cell({ item, chosen, first, choose }: CellProps) {
  const name = item.name?.name ?? "";
  const label = [name, item.state, item.owner && `held for ${item.owner}`].filter(Boolean).join(", ");
  return (
    <span
      role="option"
      class={`cell look-${lookOf(item.state)}${item.leaving ? " leaving" : ""}`}
      aria-selected={name === chosen}
      aria-label={label}
      title={label}
      data-name={name}
      tabIndex={first ? 0 : -1}
      onClick={() => choose(name)}
    >
      {letterOf(item.state)}
    </span>
  );
}
