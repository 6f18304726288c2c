// The way to the views, in groups by what people come for. On a narrow screen it is a drawer.
import { useEffect, useRef } from "preact/hooks";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { useRights } from "../api/rights";
import { treeNames } from "../api/units";
import { address, route } from "../router";
import { Icon, type IconName } from "./icon";

/** The groups in their order. */
export const groups = ["Look", "Ask", "Change", "Operate"] as const;

/** Entry is a view in the navigation. */
export interface Entry {
  view: string;
  title: string;
  group: (typeof groups)[number];
  icon: IconName;
  /** What it is for, which the search finds too. */
  about: string;
  /** The right on the cluster without which the entry is not shown. */
  needs?: string;
  /** The right on the cluster or at a tree without which the entry is not shown. */
  needsTree?: string;
  /** Shown to users who are signed in. */
  needsUser?: boolean;
}

/** The id by which the button of the bar opens the drawer. */
export const drawer = "views";

/** Brand is the mark with the name. */
export function Brand() {
  return (
    <a class="brand" href={address("overview")}>
      <img src="/ui/icon.svg" alt="" width="24" height="24" />
      Quorate
    </a>
  );
}

/** useOpenEntries are the entries of the views that the user may open. */
export function useOpenEntries(entries: Entry[]): Entry[] {
  const who = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  const cluster = [{ tree: "", node: "" }];
  const trees = [...cluster, ...treeNames().map((tree) => ({ tree, node: "" }))];
  const allowed = useRights(
    entries.flatMap((e) => (e.needs ? [{ verb: e.needs, places: cluster }] : e.needsTree ? [{ verb: e.needsTree, places: trees }] : [])),
  );
  return entries.filter((e) => (!e.needsUser || who.data?.user) && [e.needs, e.needsTree].every((verb) => !verb || allowed.has(verb)));
}

/** Navigation has the views that the user may open. */
export function Navigation({ entries }: { entries: Entry[] }) {
  const box = useRef<HTMLElement>(null);
  const { view } = route.value;
  useEffect(() => {
    if (box.current?.matches(":popover-open")) box.current.hidePopover();
  }, [route.value]);
  return (
    <nav class="side" id={drawer} aria-label="Views" popover="auto" ref={box}>
      <Brand />
      {groups
        .filter((group) => entries.some((e) => e.group === group))
        .map((group) => (
          <section key={group} aria-label={group}>
            <p class="side-group" aria-hidden="true">
              {group}
            </p>
            <ul>
              {entries
                .filter((e) => e.group === group)
                .map((e) => (
                  <ViewLink key={e.view} entry={e} current={view === e.view} />
                ))}
            </ul>
          </section>
        ))}
    </nav>
  );
}

function ViewLink({ entry, current }: { entry: Entry; current: boolean }) {
  return (
    <li>
      <a href={address(entry.view)} aria-current={current ? "page" : undefined}>
        <Icon name={entry.icon} />
        {entry.title}
      </a>
    </li>
  );
}
