// Choosing a tree and a node.
import type { ReadInfo } from "#gen/common_pb";
import type { NodeUsage } from "#gen/tree_pb";
import { useId } from "preact/hooks";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { treeNames } from "../api/units";
import { optionText } from "../format";

interface PickerProps {
  value: string;
  change: (value: string) => void;
}

/** TreePicker chooses one of the trees that the user may see; the empty value is all of them. */
export function TreePicker({ value, change, all }: PickerProps & { all?: string }) {
  const names = treeNames();
  return (
    <label>
      Tree
      <select value={value} onChange={(e) => change(e.currentTarget.value)}>
        {(all || !value) && <option value="">{all ?? "Choose a tree"}</option>}
        {value && !names.includes(value) && <option value={value}>{optionText(value)}</option>}
        {names.map((n) => (
          <option key={n} value={n}>
            {optionText(n)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** NodePicker takes the path of a node, and suggests what is below the part that is written already. */
export function NodePicker({ tree, value, change, label }: PickerProps & { tree: string; label?: string }) {
  const id = useId();
  const above = value.includes("/") ? value.slice(0, value.lastIndexOf("/")) : "";
  const below = useRead<{ nodes: NodeUsage[]; read?: ReadInfo }>(`suggest ${tree} ${above}`, { tree, configuration: true }, (read, signal) =>
    tree
      ? api.trees.getUsage({ tree, node: above, subtree: true, maxDepth: 1, pageSize: 200, read }, { signal })
      : Promise.resolve({ nodes: [] }),
  );
  return (
    <label>
      {label ?? "Node"}
      <input
        list={id}
        value={value}
        disabled={!tree}
        autocomplete="off"
        spellcheck={false}
        placeholder="root"
        onInput={(e) => change(e.currentTarget.value)}
      />
      <datalist id={id}>
        {below.data?.nodes.filter((n) => n.node).map((n) => <option key={n.node} value={n.node} />)}
      </datalist>
    </label>
  );
}
