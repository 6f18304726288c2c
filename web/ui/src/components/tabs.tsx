// Tabs, as the ARIA pattern describes them: the arrow keys move between them, and the address says which one is open.
import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";
import { route, setQuery } from "../router";

/** Tab is one of several parts of a view, of which one is shown. */
export interface Tab {
  name: string;
  title: ComponentChildren;
  content: () => ComponentChildren;
}

const moves: Record<string, (at: number, count: number) => number> = {
  ArrowRight: (at, count) => (at + 1) % count,
  ArrowLeft: (at, count) => (at + count - 1) % count,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** Tabs shows the part that the address names under "tab", or the first one. */
export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const named = tabs.findIndex((t) => t.name === route.value.query.get("tab"));
  const at = Math.max(0, named);
  const open = (i: number) => {
    setQuery({ tab: i === 0 ? undefined : tabs[i]!.name });
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[i]?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    open(move(at, tabs.length));
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map((t, i) => (
          <button
            key={t.name}
            role="tab"
            id={`${id}-${t.name}`}
            aria-selected={i === at}
            aria-controls={`${id}-panel`}
            tabIndex={i === at ? 0 : -1}
            onClick={() => open(i)}
          >
            {t.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tabs[at]!.name}`} tabIndex={0}>
        {tabs[at]!.content()}
      </div>
    </>
  );
}
