// Package idb is the profile.Store of the browser: kept analyses and checkpoints in IndexedDB, on the user's
// disk, until the user deletes them. It builds for js/wasm only.
//
// The database has two object stores:
//
//	entries  key → one object with the fields of profile.Entry, the number of
//	         chunks and the XXH64 of all data: small, so that a list is cheap
//	chunks   [key, 0], [key, 1], … → Uint8Array of at most 4 MiB
//
// A Put is one transaction over both: it removes old chunks, adds new ones and the entry, or changes nothing,
// even if the tab is closed or the machine loses power. Durability is relaxed: after a power cut the last Put
// may be missing, which saves three quarters of the time. A checksum turns damage into an error.
//
// IndexedDB ends a transaction without pending requests as soon as control returns to the browser, so code
// in a transaction waits for nothing but requests of that transaction.
package idb
