package e2e

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// A task is an uninterrupted task on the page's main thread.
type task struct{ Wall, CPU time.Duration }

// The function "tasks" runs a function, and returns all tasks of at least 10 ms that occur
// meanwhile. A task's wall-clock time is how long a user waits. On a busy machine, its CPU time is
// a more reliable measure of its cost.
func (p *tab) tasks(what func()) (list []task) {
	p.t.Helper()
	type event struct {
		Name, Ph  string
		Pid, Tid  int
		Dur, Tdur int64 // wall-clock time and CPU time in microseconds
		Args      struct{ Name string }
	}
	var mu sync.Mutex
	var events []event
	done := make(chan bool, 1)
	if err := chromedp.Listen(p.ctx, func(ev any) {
		switch ev := ev.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, v := range ev.Value {
				var e event
				if json.Unmarshal(v, &e) == nil && (e.Dur >= 10_000 || e.Name == "thread_name") {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			select {
			case done <- true:
			default: // this event belongs to an earlier trace
			}
		}
	}); err != nil {
		p.t.Fatal(err)
	}
	call[tracing.StartParams, cdp.Empty](p, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "__metadata"}, ExcludedCategories: []string{"*"}}})
	what()
	call(p, tracing.End, cdp.Empty{})
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Fatal("the browser did not finish its list of tasks")
	}
	mu.Lock()
	defer mu.Unlock()
	type thread struct{ pid, tid int }
	main := map[thread]bool{}
	for _, e := range events {
		if e.Name == "thread_name" && e.Args.Name == "CrRendererMain" {
			main[thread{e.Pid, e.Tid}] = true
		}
	}
	for _, e := range events {
		if main[thread{e.Pid, e.Tid}] && e.Ph == "X" {
			list = append(list, task{time.Duration(e.Dur) * time.Microsecond, time.Duration(e.Tdur) * time.Microsecond})
		}
	}
	slices.SortFunc(list, func(a, b task) int { return int(b.CPU - a.CPU) })
	return list
}
