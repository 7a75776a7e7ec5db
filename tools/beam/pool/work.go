package pool

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
)

// Work is a part of a bundle that a worker processes. The launcher shows how much of it is done, and
// names it if the worker dies.
type Work struct {
	Name  string
	Done  uint64 // in a unit of the caller's choice
	Ended bool
}

// watch receives the work of this process and of its workers.
var watch atomic.Pointer[func(Work)]

// Watch makes this process pass to f all work that its DoFns and its workers report. f is called
// from several goroutines.
func Watch(f func(Work)) { watch.Store(&f) }

// isWorker is set in worker processes, which report their work to the launcher.
var isWorker bool

// workMark begins the lines of a worker's standard output that report work.
const workMark = "\x1estackglass work "

// Report reports the state of work. It should be called when the work begins, at most a few times per
// second, and when the work has ended.
func Report(w Work) {
	if isWorker {
		if line, err := json.Marshal(w); err == nil {
			fmt.Fprintf(os.Stdout, "%s%s\n", workMark, line)
		}
		return
	}
	if f := watch.Load(); f != nil {
		(*f)(w)
	}
}

// took handles a line of a worker's output. It reports whether the line reported work.
func (w *worker) took(line []byte) bool {
	text, is := strings.CutPrefix(string(line), workMark)
	if !is {
		return false
	}
	var one Work
	if err := json.Unmarshal([]byte(text), &one); err != nil {
		return true
	}
	w.mu.Lock()
	w.doing = slices.DeleteFunc(w.doing, func(name string) bool { return name == one.Name })
	if !one.Ended {
		w.doing = append(w.doing, one.Name)
	}
	w.mu.Unlock()
	Report(one)
	return true
}
