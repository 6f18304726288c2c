// The token of the user of this tab. It lives in the storage of the tab, which a browser forgets when the tab closes.
import { signal } from "@preact/signals";

const key = "quorate-token";

/** The token that calls carry; empty for none. */
export const token = signal(sessionStorage.getItem(key) ?? "");

/** signIn keeps a token for this tab. */
export function signIn(text: string): void {
  token.value = text.trim();
  sessionStorage.setItem(key, token.value);
}

/** signOut forgets the token. */
export function signOut(): void {
  token.value = "";
  sessionStorage.removeItem(key);
}
