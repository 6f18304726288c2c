// Who the user is to the cluster, and the way in and out.
import { useState } from "preact/hooks";
import { AccessMode, type WhoAmIResponse } from "#gen/access_pb";
import { api } from "../api/clients";
import { useRead } from "../api/read";
import { signOut, token } from "../api/session";
import { Dialog } from "./dialog";
import { Icon } from "./icon";
import { NameList } from "./names";
import { SignInForm } from "./sign_in";
import { Instant } from "./time";

/** Account shows the user, and offers to sign in where that makes a difference. */
export function Account() {
  const who = useRead("who am I", { configuration: true }, (read, signal) => api.identity.whoAmI({ read }, { signal }));
  const user = who.data?.user;
  return (
    <span class="account">
      {who.data && user && <User who={who.data} />}
      {token.value && (
        <button class="bare" onClick={signOut}>
          Sign out
        </button>
      )}
      {!token.value && !user && who.data?.mode === AccessMode.GUARDED && <SignInButton />}
    </span>
  );
}

/** User is the name of the user, which opens what the cluster knows of the caller. */
function User({ who }: { who: WhoAmIResponse }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button class="bare" onClick={() => setOpen(true)}>
        <Icon name="account" />
        <bdi>{who.user}</bdi>
      </button>
      {open && (
        <Dialog title="Signed in" close={() => setOpen(false)}>
          <p>
            <bdi>{who.user}</bdi> ({who.kind})
          </p>
          <p>
            Groups: {who.groups.length ? <NameList names={who.groups} /> : "none"}
          </p>
          <p>
            {who.endsAt ? (
              <>
                The credential ends: <Instant at={who.endsAt} />
              </>
            ) : (
              "The credential has no end."
            )}
          </p>
        </Dialog>
      )}
    </>
  );
}

function SignInButton() {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button class="primary" onClick={() => setAsking(true)}>
        Sign in
      </button>
      {asking && (
        <Dialog title="Sign in" close={() => setAsking(false)}>
          <SignInForm />
        </Dialog>
      )}
    </>
  );
}
