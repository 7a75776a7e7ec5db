// The service worker keeps the whole site for offline use.
//
// Each version of the site has a cache of its own, named by the hash over all
// files (precache.js). Files whose hash did not change are copied from the
// cache before, the rest is fetched. Only a cache that holds every file is
// served from, so a page never runs with scripts of two versions.
//
// Programs are kept as the page needs them: unfolded, once and not at every visit, and
// so that the browser keeps what it compiled of them.
//
// What it hands out has the headers of the site's policy, whatever the host sent
// (but for the one that forbids to guess types, which the host may not know):
// workers are under a policy only if their scripts come with one, and a host that
// sends none leaves them free.
"use strict";
importScripts("precache.js");
importScripts(self.stackglassFiles.find(([name]) => name.includes("/wasm_exec."))[0]); // unfoldProgram

const prefix = "stackglass-";
const cacheName = prefix + self.stackglassVersion;
const hashHeader = "X-Stackglass-Hash";
const unfoldedHeader = "X-Stackglass-Unfolded"; // unfold.js looks for it

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
  if (event.request.method !== "GET" || url.origin !== self.location.origin) return;
  event.respondWith(answer(event.request, url));
});

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
  // One at a time: the page that is starting goes first.
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

// marked gives the response with the hash of the precache list, after checking
// it: a host in the middle of an update must not leave a mixture behind. The
// body is unpacked by then, so the packing and its length must not be kept. A program
// that is unfolded was checked before that.
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
