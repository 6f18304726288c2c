// The overview: figures, what needs attention, and every tree with its totals and fullest nodes.
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { Answer, Empty } from "../components/states";
import { address } from "../router";
import { Attention } from "./overview_attention";
import { Figures } from "./overview_figures";
import { TreeCard } from "./overview_tree";

/** Overview is the first view. */
export function Overview() {
  const interest = { queue: true, usage: true, configuration: true };
  const trees = useRead("trees", interest, (read, signal) => api.trees.listTrees({ countRequests: true, read }, { signal }));
  return (
    <>
      <h1>Overview</h1>
      <Answer read={trees}>
        {(t) =>
          t.trees.length ? (
            <>
              {t.filtered ? (
                <p class="actions">
                  <a class="button" href={address("mine")}>
                    My work
                  </a>
                </p>
              ) : (
                <Figures trees={t} />
              )}
              <Attention trees={t.trees} />
              <div class="tree-cards">
                {t.trees.map((tree) => (
                  <TreeCard key={tree.name} tree={tree} filtered={t.filtered} />
                ))}
              </div>
              {t.filtered && <p class="quiet">Trees in which you may see nothing are not listed.</p>}
            </>
          ) : (
            <NoTree filtered={t.filtered} />
          )
        }
      </Answer>
    </>
  );
}

/** NoTree says why there is nothing to see, and what to do. */
function NoTree({ filtered }: { filtered: boolean }) {
  if (!filtered) {
    return (
      <>
        <Attention trees={[]} />
        <Empty>
          There is no tree yet. <code>quorate apply -f FILE</code> makes one.
        </Empty>
      </>
    );
  }
  return <Empty>You may see no tree. An administrator of a tree can give you the right usage.read.</Empty>;
}
