package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// A watch collects the faults of a page and its workers: errors, policy violations and forbidden
// requests.
type watch struct {
	within  []string // prefixes of the URLs that the page may request
	pageCtx context.Context
	// If ignoreServiceWorkers is true, the watch excludes service workers. A watched service worker
	// is never idle, so its next version would never replace it.
	ignoreServiceWorkers bool

	mu       sync.Mutex
	faults   []string
	allowed  []string                      // texts that identify faults that a test causes on purpose
	workers  map[target.ID]context.Context // contexts of the workers that are still running
	kinds    map[target.ID]string          // kinds of these workers
	sessions map[target.SessionID]target.ID
	ended    map[target.ID]bool
	attached sync.WaitGroup
}

// tabCrash is the fault of a tab whose process has crashed.
const tabCrash = "the tab has crashed"

// watchPage starts to watch the tab that belongs to the given context. If the tab crashes, watchPage
// calls onCrash, because a crashed tab answers no call.
func watchPage(ctx context.Context, s *server, onCrash func()) (*watch, error) {
	within := []string{s.origin + "/", "blob:" + s.origin + "/", "data:"}
	if s.origin == "file://" {
		within = []string{s.origin + s.home, "blob:null/", "data:"} // only the page's own file may be requested
	}
	w := &watch{
		within: within, pageCtx: ctx,
		workers: map[target.ID]context.Context{}, kinds: map[target.ID]string{},
		sessions: map[target.SessionID]target.ID{}, ended: map[target.ID]bool{},
	}
	return w, chromedp.Listen(ctx, func(ev any) {
		w.event("page", ev)
		if _, ok := ev.(*inspector.EventTargetCrashed); ok {
			w.fault("page", "crash", tabCrash)
			go onCrash()
		}
	})
}

func (w *watch) event(who string, ev any) {
	switch ev := ev.(type) {
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" || ev.Type == "assert" {
			w.fault(who, "console."+string(ev.Type), words(ev.Args))
		}
	case *runtime.EventExceptionThrown:
		d := ev.ExceptionDetails
		text := d.Text
		if d.Exception != nil {
			text += " " + d.Exception.Description
		}
		w.fault(who, "exception", text)
	case *log.EventEntryAdded:
		if ev.Entry.Level == "error" || ev.Entry.Source == "security" {
			w.fault(who, "log of "+string(ev.Entry.Source), ev.Entry.Text+" "+ev.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		w.request(who, ev)
	case *target.EventAttachedToTarget:
		kind := ev.TargetInfo.Type
		if kind == "worker" || kind == "shared_worker" || kind == "service_worker" && !w.ignoreServiceWorkers {
			w.mu.Lock()
			w.sessions[ev.SessionID] = ev.TargetInfo.TargetID
			w.mu.Unlock()
			w.attached.Add(1)
			go w.watchWorker(ev.TargetInfo)
		}
	case *target.EventDetachedFromTarget:
		// If a worker has ended, it does not answer, so a call to it would block.
		w.mu.Lock()
		if id, ok := w.sessions[ev.SessionID]; ok {
			w.ended[id] = true
			delete(w.workers, id)
		}
		w.mu.Unlock()
	}
}

func (w *watch) request(who string, ev *network.EventRequestWillBeSent) {
	url := ev.Request.URL
	if !slices.ContainsFunc(w.within, func(begin string) bool { return strings.HasPrefix(url, begin) }) {
		w.fault(who, "request to another origin", url)
	}
}

// watchWorker adds a worker to the watch. The browser then repeats all messages that the worker has
// already written.
func (w *watch) watchWorker(info *target.Info) {
	defer w.attached.Done()
	ctx, _ := chromedp.NewContext(w.pageCtx, chromedp.WithTargetID(info.TargetID), chromedp.WithDetachOnCancel())
	if err := chromedp.Do(ctx); err != nil {
		return // the worker has already ended
	}
	w.mu.Lock()
	if w.kinds[info.TargetID] = info.Type; !w.ended[info.TargetID] {
		w.workers[info.TargetID] = ctx
	}
	w.mu.Unlock()
	_ = chromedp.Listen(ctx, func(ev any) { w.event(info.Type, ev) })
}

func (w *watch) fault(who, what, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, fmt.Sprintf("%s: %s: %s", who, what, strings.TrimSpace(text)))
}

// allowFault makes the watch ignore faults that contain the given text.
func (w *watch) allowFault(part string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.allowed = append(w.allowed, part)
}

// countFaults returns how many of the faults so far contain the given text.
func (w *watch) countFaults(part string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, fault := range w.faults {
		if strings.Contains(fault, part) {
			n++
		}
	}
	return n
}

// waitFaults waits until the wanted number of faults contain the given text, or until the time
// limit expires. It returns the number of these faults.
func (w *watch) waitFaults(part string, want int) (n int) {
	for late := time.Now().Add(waitLimit); ; time.Sleep(askEvery) {
		if n = w.countFaults(part); n >= want || time.Now().After(late) {
			return n
		}
	}
}

// workersOf returns all running workers of the given kind.
func (w *watch) workersOf(kind string) (list []context.Context) {
	w.attached.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, ctx := range w.workers {
		if w.kinds[id] == kind {
			list = append(list, ctx)
		}
	}
	return list
}

// dropWorkers forgets all known workers, because some of them may be about to end.
func (w *watch) dropWorkers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.workers)
}

// awaitWorker waits for a worker of the given kind, and ignores workers that have been forgotten.
func (w *watch) awaitWorker(kind string) (context.Context, error) {
	for late := time.Now().Add(waitLimit); time.Now().Before(late); time.Sleep(askEvery) {
		w.mu.Lock()
		for id, ctx := range w.workers {
			if w.kinds[id] == kind {
				w.mu.Unlock()
				return ctx, nil
			}
		}
		w.mu.Unlock()
	}
	return nil, errors.New("there is no worker of kind " + kind)
}

// failOnFaults reports every fault that is not allowed as a test failure.
func (w *watch) failOnFaults(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
next:
	for _, fault := range w.faults {
		for _, part := range w.allowed {
			if strings.Contains(fault, part) {
				continue next
			}
		}
		t.Error(fault)
	}
	w.faults = nil
}

func words(args []*runtime.RemoteObject) string {
	var out []string
	for _, a := range args {
		if len(a.Value) > 0 {
			out = append(out, string(a.Value))
		} else {
			out = append(out, a.Description)
		}
	}
	return strings.Join(out, " ")
}
