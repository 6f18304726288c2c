// Where the shown view is: the views and nodes above it.
import { address, route } from "../router";

interface Crumb {
  title: string;
  to: string;
}

/** Breadcrumbs leads to what is above the shown view; nothing for views at the top. */
export function Breadcrumbs() {
  const crumbs = above(route.value.view, route.value.query);
  if (!crumbs.length) return null;
  return (
    <nav class="crumbs" aria-label="Above">
      <ol>
        {crumbs.map((c) => (
          <li key={c.to}>
            <a href={c.to}>
              <bdi>{c.title}</bdi>
            </a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function above(view: string, query: URLSearchParams): Crumb[] {
  const tree = query.get("tree") ?? "";
  const node = query.get("node") ?? "";
  const trees: Crumb = { title: "Trees", to: address("tree") };
  switch (view) {
    case "tree":
      return tree ? [trees] : [];
    case "node":
      return tree ? [trees, { title: tree, to: address("tree", { tree }) }, ...nodesAbove(tree, node)] : [trees];
    case "items":
      return query.get("resource") ? [{ title: "Items", to: address("items") }] : [];
    case "history":
      return query.get("from") ? [{ title: "History", to: address("history") }] : [];
    default:
      return [];
  }
}

function nodesAbove(tree: string, node: string): Crumb[] {
  if (!node) return [];
  const parts = node.split("/");
  const paths = ["", ...parts.map((_, i) => parts.slice(0, i + 1).join("/"))].slice(0, -1);
  return paths.map((path) => ({
    title: path.slice(path.lastIndexOf("/") + 1) || "root",
    to: address("node", { tree, node: path }),
  }));
}
