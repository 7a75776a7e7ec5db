// Package web implements workers.Carrier for a page and a web worker, by postMessage. Package
// workers/local does the same for goroutines. Package web builds for js/wasm only.
//
//   - [Spawn] is called on the page. It starts a worker and returns the page's end of the
//     connection.
//   - [Help] is called in a worker. It starts another worker with the same program.
//   - [Self] is called in a worker. It returns the worker's end of the connection.
//   - [Yield] lets a worker receive events during a computation; [Await] waits for a promise.
//
// A message is an object with the fields type, job, body and attachment. The type and the job are
// numbers. The body is an ArrayBuffer, which is transferred in a tenth of a millisecond, regardless
// of its size. The attachment is cloned; cloning a File does not copy its bytes. The worker's
// bootstrap script, wasm/worker/worker.js, sends a second kind of message, with the fields exited
// (the exit code) and why (the first line of the program's last output). The second kind of message
// is necessary because the page receives no event if a Go program runs out of memory and ends.
//
// Event handlers run while the program's goroutines are waiting, so a handler that waits for a
// goroutine would never return. The handlers here only put messages into mailboxes, which never
// block.
package web
