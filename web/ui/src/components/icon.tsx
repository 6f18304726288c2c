// Icons of Lucide, drawn as elements, because the content policy lets no text become markup.
import {
  Boxes, ChevronRight, CircleHelp, Clock, FileDiff, Gauge, History, Hourglass, KeyRound, LayoutDashboard, ListTree, Menu,
  Network, Package, ScrollText, Search, Server, SlidersHorizontal, TriangleAlert, UserRound, X, Zap,
} from "lucide";
import { createElement } from "preact";

const icons = {
  account: UserRound, action: Zap, alert: TriangleAlert, allocation: Package, audit: ScrollText, close: X, cluster: Server,
  gauge: Gauge, history: History, items: Boxes, key: KeyRound, leases: Clock, menu: Menu, more: ChevronRight,
  node: Network, overview: LayoutDashboard, plan: FileDiff, queue: Hourglass, requests: SlidersHorizontal, search: Search,
  tree: ListTree, whatIf: CircleHelp,
};

/** IconName names an icon. */
export type IconName = keyof typeof icons;

/** Icon is decoration: what it stands for is said in words beside it. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      {icons[name].map(([tag, attributes], i) => createElement(tag, { key: i, ...attributes }))}
    </svg>
  );
}
