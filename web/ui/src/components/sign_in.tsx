// Asking for a token where a call needs one.
import { useState } from "preact/hooks";
import { signIn } from "../api/session";

/** SignIn says why a token is needed, and takes one. */
export function SignIn({ why }: { why: string }) {
  return (
    <section class="card welcome">
      <img src="/ui/icon.svg" alt="" width="56" height="56" />
      <h2>Sign in</h2>
      <p role="alert">{why}</p>
      <SignInForm />
    </section>
  );
}

/** SignInForm takes a token for this tab. */
export function SignInForm() {
  const [text, setText] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (text.trim()) signIn(text);
  };
  return (
    <form class="sign-in" onSubmit={submit}>
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          spellcheck={false}
          autofocus
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
      </label>
      <button class="primary">Sign in</button>
      <p class="quiet">
        The token stays in this tab and is forgotten when the tab closes. An administrator makes one with{" "}
        <code>quorate token create</code>.
      </p>
    </form>
  );
}
