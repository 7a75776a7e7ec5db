//go:build js && wasm

package main

import (
	"time"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/workers/web"
	"github.com/vugu/vugu"
)

// warmUpAfter is how long the page must have been idle.
const warmUpAfter = 300 * time.Millisecond

// warmUp makes the browser compile what the first view of a result needs. Browsers compile a function when it
// is first called; all together take a fifth of a second, in which a new run would not answer. The browser
// handles events between the short steps.
func warmUp() {
	time.Sleep(warmUpAfter)
	builder, err := vugu.NewBuildEnv()
	if err != nil {
		return
	}
	for _, step := range ui.Rehearse(func(c vugu.Builder) { builder.RunBuild(c) }) {
		web.Yield()
		step()
	}
}
