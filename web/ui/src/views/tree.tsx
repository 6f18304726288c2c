// A tree: its nodes as a grid that opens level by level, or those that a filter finds.
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { treeNames } from "../api/units";
import { TreePicker } from "../components/pickers";
import { Answer, Empty } from "../components/states";
import { Tabs } from "../components/tabs";
import { address, go, route, setQuery } from "../router";
import { Browse } from "../tree/browse";
import { Found } from "../tree/found";
import { TreeMap } from "../tree/map";
import { TreeCard } from "./overview_tree";

/** Tree is the view of one tree. */
export function Tree() {
  const { query } = route.value;
  const tree = query.get("tree") ?? "";
  const names = treeNames();
  useEffect(() => {
    if (!tree && names.length === 1) go(address("tree", { tree: names[0] }), true);
  }, [tree, names.length]);
  return (
    <>
      <h1>{tree ? <>Tree {<bdi>{tree}</bdi>}</> : "Trees"}</h1>
      <div class="filters">
        <TreePicker value={tree} change={(t) => go(address("tree", { tree: t }))} />
        {tree && <NameFilter key={tree} />}
        {tree && <FullFilter />}
      </div>
      {tree ? <Shown key={tree} tree={tree} /> : <TreeList />}
    </>
  );
}

/** TreeList has all trees, for those who have not chosen one. */
function TreeList() {
  const trees = useRead("trees", { queue: true, usage: true, configuration: true }, (read, signal) =>
    api.trees.listTrees({ countRequests: true, read }, { signal }),
  );
  return (
    <Answer read={trees}>
      {(t) =>
        t.trees.length ? (
          <div class="tree-cards">
            {t.trees.map((tree) => (
              <TreeCard key={tree.name} tree={tree} filtered={t.filtered} />
            ))}
          </div>
        ) : (
          <Empty>There is no tree that you may see.</Empty>
        )
      }
    </Answer>
  );
}

function Shown({ tree }: { tree: string }) {
  const { query } = route.value;
  const top = query.get("node") ?? "";
  const name = query.get("name") ?? "";
  const full = Number(query.get("full")) || 0;
  if (name || full > 0) return <Found {...{ tree, top, name, full }} />;
  return (
    <Tabs
      label="Shape"
      tabs={[
        { name: "grid", title: "Grid", content: () => <Browse key={top} tree={tree} top={top} /> },
        { name: "map", title: "Map", content: () => <TreeMap key={top} tree={tree} top={top} /> },
      ]}
    />
  );
}

/** How long after the last letter a name is searched for, in milliseconds. */
const typingPause = 300;

function NameFilter() {
  const [text, setText] = useState(route.value.query.get("name") ?? "");
  useEffect(() => {
    const timer = setTimeout(() => {
      if ((route.value.query.get("name") ?? "") !== text.trim()) setQuery({ name: text.trim() });
    }, typingPause);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label>
      Name contains
      <input type="search" value={text} maxLength={63} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} />
    </label>
  );
}

function FullFilter() {
  return (
    <label>
      Nodes
      <select value={route.value.query.get("full") ?? ""} onChange={(e) => setQuery({ full: e.currentTarget.value })}>
        <option value="">all, level by level</option>
        <option value="1">with something used, fullest first</option>
        <option value="90">at least 90 % full</option>
        <option value="100">full or over</option>
      </select>
    </label>
  );
}
