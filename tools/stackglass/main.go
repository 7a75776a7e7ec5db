// Command stackglass analyses memory traces: one pass over a trace produces a profile, and the
// profile answers questions about any cache.
//
//	stackglass analyze app.lackey.lz4 -o app.sgp
//	stackglass locality app.sgp --format csv
//	stackglass what-if app.sgp --cache L1=32KiB,full --cache L2=1MiB,full
//	stackglass serve
//
// `stackglass help` lists the verbs. Package internal/command implements the verbs; package main
// only calls it.
package main

import (
	"os"
	"runtime/debug"

	"github.com/stackglass/stackglass/tools/stackglass/internal/command"
	"github.com/stackglass/stackglass/tools/stackglass/internal/pass"
)

// version is set by the linker; see the Makefile. If the command was built by `go install`, version
// is empty.
var version string

func main() {
	if os.Getenv("GOGC") == "" {
		// A stack model consists of a few large tables without pointers. Scanning such tables costs the
		// garbage collector nothing, but the old copies of tables that have grown would double the
		// memory.
		debug.SetGCPercent(20)
		pass.HoldBallast()
	}
	if version != "" {
		command.Version = version
	}
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
