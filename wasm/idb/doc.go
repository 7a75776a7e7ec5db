// Package idb implements profile.Store in the browser. It keeps analyses and checkpoints in
// IndexedDB, on the user's disk, until the user deletes them. It builds for js/wasm only.
//
// The database has two object stores:
//
//	entries  key → one object with the fields of profile.Entry, the number of
//	         chunks and the XXH64 of all data: small, so that a list is cheap
//	chunks   [key, 0], [key, 1], … → Uint8Array of at most 4 MiB
//
// A Put is one transaction over both object stores. It either replaces the old chunks and the
// entry, or changes nothing, even if the tab is closed or the machine loses power. Durability is
// relaxed, which saves three quarters of the time: after a power failure, the last Put may be
// missing. A checksum detects damage, which is reported as an error.
//
// IndexedDB ends a transaction as soon as control returns to the browser while no request of the
// transaction is pending. So code in a transaction must wait only for requests of that transaction.
package idb
