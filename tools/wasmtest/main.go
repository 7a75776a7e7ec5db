// Command wasmtest runs a Go test binary for js/wasm in a web worker of a real browser. The go
// command calls wasmtest through the -exec flag:
//
//	go build -o bin/wasmtest ./tools/wasmtest
//	GOOS=js GOARCH=wasm go test -exec="$PWD/bin/wasmtest" ./wasm/... ./workers/...
//	GOOS=js GOARCH=wasm go test -exec="$PWD/bin/wasmtest" -run='^$' -bench=. ./core/stack
//
// How it works:
//
//  1. The jumps in the binary are converted to branches and loops, as in the page's program. A
//     server on a loopback port serves the binary, Go's wasm_exec.js and a page, all with the
//     content security policy of the site.
//  2. Chromium opens the page in a new, empty, persistent profile (an off-the-record profile has a
//     different kind of storage). The page starts a worker, which runs the binary with the
//     arguments.
//  3. While the binary runs, its output is sent back to the server and copied to stdout and stderr.
//     This command exits with the binary's exit code.
//
// A browser has no file system, so tests embed or fetch the files that they read. The tests can
// read the environment variables whose names begin with GO, STACKGLASS_ or RAPID_, and also:
//
//	WASMTEST_URL         the server's address, ending in a slash. Below it:
//	                     src/ (the module's files), test.wasm (the binary
//	                     itself, for tests that start workers of their own),
//	                     wasm_exec.js (also in every folder), and
//	                     quota?bytes=N, which limits the origin's storage for
//	                     the tests that fill it (no bytes: no limit)
//	STACKGLASS_DATA_URL  the files of $STACKGLASS_DATA (default: ../shared/data
//	                     from the module's root); not set when there are none
//
// STACKGLASS_CHROMIUM is the path of the browser to run; by default, a browser in the PATH is run.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	// go test sends SIGQUIT on a timeout. A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT)
	context.AfterFunc(ctx, stop)
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "wasmtest:", err)
	}
	os.Exit(code)
}
