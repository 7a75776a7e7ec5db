//go:build js && wasm

// App is the program of the page. App connects package ui to the browser, and renders the
// components. In a worker, the same program is the host that runs analyses, because one program for
// both tasks is a third smaller than two programs.
package main

import (
	"runtime/debug"
	"strings"
	"syscall/js"
	"time"

	"github.com/stackglass/stackglass/ui"
	"github.com/stackglass/stackglass/wasm/host"
	"github.com/stackglass/stackglass/wasm/idb"
	"github.com/stackglass/stackglass/workers/web"
	"github.com/vugu/vugu"
	"github.com/vugu/vugu/domrender"
)

// memoryLimit is the page's memory limit for the garbage collector. Workers have a higher limit.
const memoryLimit = 1 << 30

func main() {
	if host.InWorker() {
		if err := host.Run(); err != nil {
			panic(err) // worker.js reports the panic to the page
		}
		return
	}
	debug.SetMemoryLimit(memoryLimit)
	if err := run(); err != nil {
		script("").Call("fail",
			"The page's program has crashed ("+err.Error()+"). Stored analyses are untouched; reload the page to continue.")
	}
}

func run() error {
	renderer, err := domrender.New("#app")
	if err != nil {
		return err
	}
	builder, err := vugu.NewBuildEnv(renderer.EventEnv())
	if err != nil {
		return err
	}
	page := &browser{}
	app := &ui.App{Env: renderer.EventEnv(), Port: page}
	page.app = app
	root := ui.NewRoot(app)
	go begin(app, page)

	for ok := true; ok; ok = renderer.EventWait() {
		page.Breathe() // let the task that changed the page finish
		if !app.Changed() {
			continue
		}
		rendered := page.beginBuild()
		built := builder.RunBuild(root)
		ui.Fit(built)
		page.Breathe() // later changes are rendered in the next build
		if err := renderer.Render(built); err != nil {
			return err
		}
		rendered()
	}
	return nil
}

// begin opens the store and takes over from boot.js.
func begin(app *ui.App, page *browser) {
	store, err := idb.Open(idb.DefaultName)
	if err != nil {
		app.NoStore = "This browser stores no data for this page (" + err.Error() +
			"; private windows often prevent storage). Analyses still run, but export the results that you want to keep."
	} else {
		app.Store = store
	}
	app.Tabs, app.Handles, app.Shelves = newTabs(app), newHandles(), shelves{}
	app.SourceFiles = newSources()
	listen("focus", func(js.Value) { go app.Refresh() })
	js.Global().Call("addEventListener", "pointerdown", web.Function(func([]js.Value) { app.Pressed() }), true)
	listen("pagehide", func(event js.Value) {
		if event.Get("persisted").Truthy() {
			go func() {
				if store != nil {
					store.Suspend()
				}
				app.Leave()
			}()
		}
	})
	listen("pageshow", func(event js.Value) {
		if store != nil && event.Get("persisted").Truthy() {
			go store.Resume()
		}
	})
	app.Start("#" + page.Hash())
	js.Global().Call("addEventListener", "click", web.Function(func([]js.Value) { page.finishHash() }), true)
	listen("hashchange", func(event js.Value) {
		page.hashWaits = false // drop the pending hash, which belongs to the previous history entry
		_, hash, _ := strings.Cut(event.Get("newURL").String(), "#")
		app.Follow(hash)
	})
	script("").Call("onItem", web.Function(func(args []js.Value) {
		if pair := args[0].Get("pair"); pair.Truthy() {
			first, second := itemOf(pair.Index(0)), itemOf(pair.Index(1))
			go app.OfferPair(first, second)
			return
		}
		item := itemOf(args[0])
		go app.Offer(item)
	}))
	element("interrupted-resume").Call("addEventListener", "click", web.Function(func([]js.Value) { go app.ResumeLatest() }))
	// More workers than processors would slow each other down.
	workers := element("workers")
	workers.Set("length", min(workers.Get("length").Int(), 1+js.Global().Get("navigator").Get("hardwareConcurrency").Int()))
	page.connectTables(app)
	script("Charts").Call("onZoom", web.Function(func(args []js.Value) {
		chart, from, to := args[0].String(), args[1].Float(), args[2].Float()
		go app.ZoomChart(chart, from, to)
	}))
	script("Charts").Call("onMove", web.Function(func(args []js.Value) {
		level, bytes := args[0].Int(), uint64(args[1].Float())
		go app.Move(level, bytes)
	}))
	js.Global().Get("document").Get("documentElement").Get("dataset").Set("ready", "1")
	warmUp()
	app.Sweep()
}

// warmUpAfter is the time for which the page must be idle before warmUp runs.
const warmUpAfter = 300 * time.Millisecond

// warmUp makes the browser compile the code of the first view of a result. Browsers compile a
// function when it is first called. Compiling all functions of the view at once would take a fifth
// of a second, and a new run would not respond during this time. The browser handles events
// between the short steps.
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
