// Package web carries messages between a page and a web worker by postMessage:
// the twin of workers/local for the browser. It builds for js/wasm only.
//
//   - [Spawn], on the page, starts a worker and gives the page's end.
//   - [Help], in a worker, starts another one with the same program.
//   - [Self], in the worker's program, gives the worker's end.
//   - [Yield] lets events in while a worker computes; [Await] waits for a
//     promise.
//
// A message is an object with the fields type and job (numbers), body (an
// ArrayBuffer, transferred: a tenth of a millisecond at any size) and
// attachment (cloned; a File is cloned without its bytes). The worker's
// bootstrap script, wasm/worker/worker.js, adds one of its own: exited (the exit
// code) and why (the last words), because a Go program that runs out of memory
// ends without any event on the page.
//
// Event handlers run while the program's goroutines wait: a handler that waits
// for one of them would never return. So handlers here only put into mailboxes,
// which never wait, and everything that waits does it in a goroutine.
package web
