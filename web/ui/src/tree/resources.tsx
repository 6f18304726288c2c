// Which resources a view of a tree shows: those that the address names, or the usual ones.
import { route, setQuery } from "../router";

/** chosenResources are those of the address, in the order of all; undefined if it names none. */
export function chosenResources(all: string[]): string[] | undefined {
  const named = route.value.query.get("resources")?.split(",") ?? [];
  const kept = all.filter((r) => named.includes(r));
  return kept.length ? kept : undefined;
}

/** ResourceChoice chooses resources. */
export function ResourceChoice({ all, shown }: { all: string[]; shown: string[] }) {
  const choose = (name: string, on: boolean) => {
    const next = all.filter((r) => (r === name ? on : shown.includes(r)));
    if (next.length) setQuery({ resources: next.join(",") });
  };
  return (
    <details class="choice">
      <summary>
        Resources: {shown.length} of {all.length}
      </summary>
      <fieldset>
        <legend class="hidden">Resources to show</legend>
        {all.map((name) => (
          <label key={name} class="check">
            <input
              type="checkbox"
              checked={shown.includes(name)}
              disabled={shown.length === 1 && shown[0] === name}
              onChange={(e) => choose(name, e.currentTarget.checked)}
            />
            <bdi>{name}</bdi>
          </label>
        ))}
      </fieldset>
    </details>
  );
}
