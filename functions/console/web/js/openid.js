// Sign-in through an OpenID Connect provider: the authorization code flow with PKCE, in the browser, without a session on the server.

import { access, keepCredential } from "./credentials.js";

const STATE = "lamplighter.sign-in";

const base64url = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const secret = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

/**
 * The address that the provider sends people back to. It is always the same text, because providers compare it with what they know:
 * with the slash at the end, without a fragment and a query.
 */
const backHere = () => `${location.origin}${access.base}/`;

/** Sends the person to the provider. `openid` is `{ authorize, token, client_id, scope }`. */
export async function beginSignIn(openid) {
  if (!crypto.subtle) throw new Error("Sign-in needs an https address. Paste an API key instead.");
  const verifier = secret();
  const state = secret();
  const nonce = secret();
  const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
  sessionStorage.setItem(STATE, JSON.stringify({ state, verifier, nonce, hash: location.hash }));
  const to = new URL(openid.authorize);
  const parameters = { response_type: "code", client_id: openid.client_id, redirect_uri: backHere(), scope: openid.scope, state, nonce, code_challenge: challenge, code_challenge_method: "S256" };
  for (const [name, value] of Object.entries(parameters)) to.searchParams.set(name, value);
  location.assign(to);
}

/**
 * Finishes a sign-in if the address is the answer of the provider. Returns null, or an error in words. The code leaves the address at once,
 * whatever comes of it.
 */
export async function finishSignIn(openid) {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("state") || !(answer.has("code") || answer.has("error"))) return null;
  const begun = JSON.parse(sessionStorage.getItem(STATE) ?? "null");
  sessionStorage.removeItem(STATE);
  history.replaceState(null, "", backHere() + (begun?.hash ?? ""));
  if (!openid || !begun || begun.state !== answer.get("state")) return "This sign-in was not begun here. Try again.";
  if (answer.has("error")) return `The provider refused the sign-in: ${answer.get("error_description") ?? answer.get("error")}`;
  const response = await fetch(openid.token, {
    method: "POST",
    credentials: "omit",
    headers: { accept: "application/json" },
    body: new URLSearchParams({ grant_type: "authorization_code", code: answer.get("code"), client_id: openid.client_id, redirect_uri: backHere(), code_verifier: begun.verifier }),
  }).catch(() => null);
  if (!response) return "The provider of the sign-in does not answer. Try again.";
  const tokens = await response.json().catch(() => ({}));
  if (!response.ok) return `The provider refused the code: ${tokens.error_description ?? tokens.error ?? response.status}`;
  const token = tokens[openid.use] ?? tokens.access_token;
  if (!token) return "The provider sent no token.";
  if (tokens.id_token && claims(tokens.id_token).nonce !== begun.nonce) return "The answer of the provider does not belong to this sign-in. Try again.";
  keepCredential(token, false);
  return null;
}

function claims(token) {
  try {
    const part = token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(part), (char) => char.charCodeAt(0))));
  } catch {
    return {};
  }
}
