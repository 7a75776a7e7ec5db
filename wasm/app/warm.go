//go:build js && wasm

package main

import (
	"time"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/workers/web"
	"github.com/vugu/vugu"
)

// warmUpAfter is when the page has been still for long enough.
const warmUpAfter = 300 * time.Millisecond

// warmUp has the browser compile what the first picture of a result needs.
// Browsers compile a function of a wasm file when it is first called; together
// that is a fifth of a second in which a run that has just begun would not
// answer. Each step is short, and the browser takes its turn in between.
func warmUp() {
	time.Sleep(warmUpAfter)
	builder, err := vugu.NewBuildEnv()
	if err != nil {
		return
	}
	build := func(c vugu.Builder) { builder.RunBuild(c) }
	for _, step := range ui.Rehearse(build) {
		web.Yield()
		step()
	}
}
