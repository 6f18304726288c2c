// The dashboard: a page that shows who holds what, who waits for what, and what would help.
import { render } from "preact";
import { start } from "./api/live";
import { followUnits } from "./api/units";
import { Shell } from "./components/shell";
import { address, followLinks, route } from "./router";
import { entries, views } from "./views/views";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/chart.css";
import "./styles/requests.css";
import "./styles/what_if.css";
import "./styles/configuration.css";
import "./styles/cluster.css";
import "./styles/items.css";
import "./styles/leases.css";
import "./styles/tree.css";
import "./styles/overview.css";

function App() {
  const shown = views.find((v) => v.view === route.value.view);
  document.title = `${shown?.title ?? "Not found"} · Quorate`;
  return (
    <Shell entries={entries}>
      {shown ? <shown.page key={shown.view} /> : <NotFound />}
    </Shell>
  );
}

function NotFound() {
  return (
    <>
      <h1>There is no such page</h1>
      <p>
        <a href={address("overview")}>Go to the overview</a>
      </p>
    </>
  );
}

followLinks();
start();
followUnits();
render(<App />, document.getElementById("app")!);
