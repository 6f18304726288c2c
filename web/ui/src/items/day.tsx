// The states of items over the last 24 hours.
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { TimeChart } from "../components/chart";
import { Answer } from "../components/states";
import { lookOf } from "./cell";

/** ItemDay draws how many items were in each state. */
export function ItemDay({ tree, resource }: { tree: string; resource: string }) {
  const read = useRead(`activity ${tree} items ${resource}`, { tree, items: true }, (_, signal) =>
    api.activity.getActivity({ tree, resource }, { signal }),
  );
  return (
    <section>
      <h2>The last 24 hours</h2>
      {read.failure?.kind === "missing" ? (
        <p class="quiet empty">Nothing has happened here since the serving node started.</p>
      ) : (
        <Answer read={read}>
          {({ steps }) => {
            const names = [...new Set(steps.flatMap((s) => Object.keys(s.states)))].sort();
            return (
              <TimeChart
                title="Items by state"
                stacked
                times={steps.map((s) => (s.beginsAt ? timestampDate(s.beginsAt) : new Date(0)))}
                series={names.map((name) => ({
                  name,
                  look: lookOf(name),
                  values: steps.map((s) => Number(s.states[name] ?? 0n)),
                }))}
              />
            );
          }}
        </Answer>
      )}
    </section>
  );
}
