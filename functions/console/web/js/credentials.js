// The bearer token of this page. It never stands in an address, because addresses are logged and shared.

const NAME = "lamplighter.token";

const credentialListeners = new Set();

/** How people get in, as the server that sent the page says it. */
export const access = JSON.parse(document.querySelector("meta[name=access]")?.content || '{"auth":"off"}');

/** The token, or null. */
export function credential() {
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME);
}

/** Keeps a token until the tab is closed, or longer if `remember` is set. */
export function keepCredential(token, remember) {
  sessionStorage.setItem(NAME, token);
  if (remember) localStorage.setItem(NAME, token);
  for (const listener of credentialListeners) listener(true);
}

/** Forgets the token, for example because the platform refused it. */
export function forgetCredential() {
  if (credential() === null && access.auth === "off") return;
  sessionStorage.removeItem(NAME);
  localStorage.removeItem(NAME);
  for (const listener of credentialListeners) listener(false);
}

/** What this browser keeps of a person, besides choices such as the theme. */
const PERSONAL = /^lamplighter\.(draft |setups$|outcomes$|agent$)/;

/** Forgets the token because the person leaves, and what they have written here. */
export function signOut() {
  for (const storage of [sessionStorage, localStorage]) {
    for (const name of Object.keys(storage)) if (PERSONAL.test(name)) storage.removeItem(name);
  }
  forgetCredential();
}

/** Calls `listener(isIn)` when a person comes in or goes out. */
export function onCredential(listener) {
  credentialListeners.add(listener);
}

/** Whether the page can call the platform at all. */
export function isIn() {
  return access.auth === "off" || credential() !== null;
}
