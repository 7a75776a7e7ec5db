// The service worker keeps the whole site for offline use.
//
// Each version of the site has its own cache, which is named after a hash over all files
// (precache.js). Files whose hashes have not changed are copied from the previous cache; all others
// are fetched. A cache is used only once it contains every file, so a page never runs scripts of
// two versions.
//
// Programs are stored unfolded, so they need not be unfolded at every visit, and the browser can
// cache their compiled code.
//
// Responses have the headers of the site's policy, whatever the host sent, because the policy
// applies to a worker only if its script has these headers. The header that forbids browsers to
// guess types is left out, because the host may send wrong types.
"use strict";
importScripts("precache.js");
importScripts(self.stackglassFiles.find(([name]) => name.includes("/wasm_exec."))[0]); // unfoldProgram

const prefix = "stackglass-";
const cacheName = prefix + self.stackglassVersion;
const hashHeader = "X-Stackglass-Hash";
const unfoldedHeader = "X-Stackglass-Unfolded"; // unfold.js checks it

self.addEventListener("install", (event) => {
  event.waitUntil(fill());
});

self.addEventListener("activate", (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) {
      if (name.startsWith(prefix) && name !== cacheName) await caches.delete(name);
    }
    await self.clients.claim();
  })());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method === "POST" && url.href === new URL("share", self.registration.scope).href) {
    return event.respondWith(share(event.request));
  }
  if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
  event.respondWith(answer(event.request, url));
});

// share stores the files that another app shares with the installed page. The page (boot.js) takes
// them from there; they are not sent to any server.
async function share(request) {
  const cache = await caches.open("shared");
  for (const file of (await request.formData()).getAll("files")) {
    await cache.put(new URL("shared/" + encodeURIComponent(file.name), self.registration.scope).href, new Response(file));
  }
  return Response.redirect(new URL("?shared", self.registration.scope).href, 303);
}

async function answer(request, url) {
  const scope = new URL(self.registration.scope);
  let name = url.pathname.startsWith(scope.pathname) ? url.pathname.slice(scope.pathname.length) : "";
  if (name === "" && request.mode === "navigate") name = "index.html";
  const cache = await caches.open(cacheName);
  return await cache.match(new URL(name, scope).href) || fetch(request);
}

async function fill() {
  const cache = await caches.open(cacheName);
  const before = await earlier();
  // Files are fetched one at a time, because the page that is starting has priority.
  for (const [name, hash] of self.stackglassFiles) {
    const url = new URL(name, self.registration.scope).href;
    if (await cache.match(url)) continue;
    const kept = before && await before.match(url);
    if (kept && kept.headers.get(hashHeader) === hash) {
      await cache.put(url, await marked(name, kept, hash, kept.headers.has(unfoldedHeader)));
      continue;
    }
    const response = await fetch(url, { cache: "no-cache" });
    if (!response.ok) throw new Error(name + ": status " + response.status);
    await cache.put(url, await marked(name, response, hash));
  }
}

// marked checks a response against the hash in the precache list, and returns it with this hash. If
// the host is being updated, this keeps a mixture of versions out of the cache. The headers with the
// encoding and the length are removed, because the body has been decompressed. An unfolded program
// was checked before it was unfolded.
async function marked(name, response, hash, unfolded = false) {
  let body = await response.arrayBuffer();
  const headers = new Headers(response.headers);
  if (!unfolded) {
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", body), 0, 8);
    const got = Array.from(sum, (b) => b.toString(16).padStart(2, "0")).join("");
    if (got !== hash) throw new Error(name + ": hash " + got + ", want " + hash + "; the host is being updated, the next visit tries again");
    headers.delete(unfoldedHeader);
    if (name.endsWith(".wasm")) {
      body = await new Response(unfoldProgram(new Response(body).body)).arrayBuffer();
      headers.set("Content-Type", "application/wasm");
      headers.set(unfoldedHeader, "1");
    }
  }
  headers.delete("Content-Encoding");
  headers.delete("Content-Length");
  for (const [header, value] of self.stackglassHeaders) headers.set(header, value);
  headers.set(hashHeader, hash);
  return new Response(body, { status: 200, headers });
}

async function earlier() {
  for (const name of await caches.keys()) {
    if (name.startsWith(prefix) && name !== cacheName) return caches.open(name);
  }
  return null;
}
