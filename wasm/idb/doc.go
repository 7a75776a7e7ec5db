// Package idb implements profile.Store in the browser. Analyses and checkpoints are kept in
// IndexedDB, on the user's disk, until the user deletes them. Package idb builds for js/wasm only.
//
// The database has two object stores:
//
//	entries  key → one object with the fields of profile.Entry, the number of
//	         chunks and the XXH64 of all data: small, so that a list is cheap
//	chunks   [key, 0], [key, 1], … → Uint8Array of at most 4 MiB
//
// A Put is a single transaction on both object stores. The transaction either replaces the old
// chunks and the entry, or changes nothing, even if the tab is closed or the machine loses power.
// Transactions have relaxed durability, which saves three quarters of the time. The last Put may
// therefore be missing after a power failure. A checksum detects damage, which is reported as an
// error.
//
// IndexedDB ends a transaction as soon as control returns to the browser while the transaction has
// no pending request. Code in a transaction must therefore wait only for requests of that
// transaction.
package idb
