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

// A task is a period in which the page's main thread is busy without interruption.
type task struct{ Wall, CPU time.Duration }

// longTasks runs an action, and returns all tasks of at least 10 ms that occur during this action.
// The wall-clock time of a task is how long a user waits. On a busy machine, the CPU time is a more
// reliable measure of the cost.
func (p *tab) longTasks(action func()) (list []task) {
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
			default: // ignore events of an earlier trace
			}
		}
	}); err != nil {
		p.t.Fatal(err)
	}
	callDevTools[tracing.StartParams, cdp.Empty](p, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{IncludedCategories: []string{"toplevel", "__metadata"}, ExcludedCategories: []string{"*"}}})
	action()
	callDevTools(p, tracing.End, cdp.Empty{})
	select {
	case <-done:
	case <-time.After(waitLimit):
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
