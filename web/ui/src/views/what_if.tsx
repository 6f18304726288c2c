// What would become of a request: each level that it passes, what stops it, and the smallest change that would admit it.
import { useEffect, useRef, useState } from "preact/hooks";
import { unitOf } from "../api/units";
import { useDelayed } from "../components/delayed";
import { readDraft, writeDraft, type Draft } from "../requests/draft";
import { checkDraft } from "../requests/draft_request";
import { newId } from "../requests/id";
import { go, route } from "../router";
import { WhatIfAnswer } from "./what_if_answer";
import { DraftForm } from "./what_if_form";

/** An id that no allocation has, for questions about requests without an id of their own. */
const questionId = newId("what-if");

/** WhatIf builds a request, and shows what it would lead to while it is written. */
export function WhatIf() {
  const [draft, change] = useDraft();
  const written = useDelayed(JSON.stringify(draft));
  const { request, faults } = checkDraft(draft, questionId, unitOf);
  const settled = written === JSON.stringify(draft);
  return (
    <>
      <h1>What if</h1>
      <div class="what-if">
        <DraftForm draft={draft} change={change} faults={faults} />
        <section aria-live="polite" aria-label="Answer">
          {request ? (
            <WhatIfAnswer draft={draft} request={request} settled={settled} />
          ) : (
            <p class="quiet">Say what is asked for, and at which node. The answer follows as you write.</p>
          )}
        </section>
      </div>
    </>
  );
}

/** useDraft is the draft of the address. The address follows once the user pauses. */
function useDraft(): [Draft, (draft: Draft) => void] {
  const query = route.value.query.toString();
  const [draft, setDraft] = useState(() => readDraft(route.value.query));
  const own = useRef(query);
  useEffect(() => {
    if (query !== own.current) setDraft(readDraft(new URLSearchParams(query)));
    own.current = query;
  }, [query]);
  const written = useDelayed(writeDraft(draft));
  useEffect(() => {
    if (written === own.current || route.value.view !== "what-if") return;
    own.current = written;
    go(location.pathname + (written && `?${written}`), true);
  }, [written]);
  return [draft, setDraft];
}
