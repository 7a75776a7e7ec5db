// Package web connects a page and a web worker by postMessage, as workers/local connects goroutines. It
// builds for js/wasm only.
//
//   - [Spawn], on the page, starts a worker and returns the page's end.
//   - [Help], in a worker, starts another one with the same program.
//   - [Self], in the worker's program, returns the worker's end.
//   - [Yield] lets events in while a worker computes; [Await] waits for a promise.
//
// A message is an object with the fields type and job (numbers), body (an ArrayBuffer, transferred in a
// tenth of a millisecond at any size) and attachment (cloned; a File without its bytes). The worker's
// bootstrap script, wasm/worker/worker.js, sends a message of its own with exited (the exit code) and why
// (the first line of its last words), because a Go program that runs out of memory ends without an event on the
// page.
//
// Event handlers run while the program's goroutines wait, so a handler that waits for one of them would
// never return. Handlers here only put messages into mailboxes, which never block.
package web
