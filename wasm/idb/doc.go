// Package idb is the profile.Store of the browser: kept analyses and
// checkpoints in IndexedDB, on the user's disk, until the user deletes them. It
// builds for js/wasm only.
//
// The database has two object stores:
//
//	entries  key → one object with the fields of profile.Entry, the number of
//	         chunks and the XXH64 of all data: small, so that a list is cheap
//	chunks   [key, 0], [key, 1], … → Uint8Array of at most 4 MiB
//
// A Put is one transaction over both: old chunks out, new chunks in, entry. It
// happens whole or not at all, also when the tab is closed or the machine loses
// power in the middle. Durability is relaxed: after a power cut the last Put may
// be missing, which saves three quarters of the time. What comes back is
// checked against the sum, so damage is an error and never a wrong profile.
//
// IndexedDB ends a transaction as soon as nothing is asked of it when control
// returns to the browser; so nothing here waits for anything but requests of its
// own transaction while one is open.
package idb
