package pool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	fnpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/fnexecution_v1"
)

const (
	startTime   = time.Minute     // for a new process to connect
	partingTime = 2 * time.Second // for the other side to end a connection itself
)

// worker is one worker process, from its start to its end. A process that replaces a lost one is a
// separate worker.
type worker struct {
	router *router
	slot   int    // 0 to Workers-1
	id     string // in the metadata of its calls

	// Messages to send to the worker.
	control *queue[*fnpb.InstructionRequest]
	data    *queue[*fnpb.Elements]
	state   *queue[*fnpb.StateResponse]

	// Guarded by router.mu.
	live   bool               // connected and not given up
	met    bool               // has connected
	ended  bool               // its process has ended
	active map[string]*bundle // bundles it works on: b.worker == this

	mu      sync.Mutex
	doing   []string    // the work that it has begun, but not ended
	process *os.Process // nil before it has started and after it has ended
	killed  bool
	why     string // why the router killed it, if it did
}

// run starts the process, waits for its end, and returns a description of how it ended.
func (w *worker) run(opt Options) string {
	// Linux sends the signal of dieWithParent when this thread ends, not when
	// the process does. So the thread is locked as long as the worker runs.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	messages := &lineWriter{w: opt.Stderr, prefix: fmt.Sprintf("worker %d: ", w.slot), takes: w.took}
	defer messages.flush()
	cmd := exec.Command(opt.Command[0], opt.Command[1:]...)
	cmd.Env = append(append(os.Environ(), opt.Env...), endpointVar+"="+w.router.pool.endpoint, workerVar+"="+w.id)
	cmd.Stdout, cmd.Stderr = messages, messages
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe open
	cmd.SysProcAttr = dieWithParent()
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	w.mu.Lock()
	w.process = cmd.Process
	killed := w.killed
	w.mu.Unlock()
	if killed {
		cmd.Process.Kill()
	}
	late := time.AfterFunc(startTime, func() {
		if !w.router.hasMet(w) {
			w.killBecause(fmt.Sprintf("it did not connect within %v", startTime))
		}
	})
	defer late.Stop()

	cmd.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.process = nil
	end := fmt.Sprintf("process %d: %s", cmd.Process.Pid, cmd.ProcessState)
	if w.why != "" {
		end += ", killed because " + w.why
	}
	if len(w.doing) > 0 {
		end += ", while it worked on " + strings.Join(w.doing, " and on ")
	}
	return end
}

func (w *worker) kill() { w.killBecause("") }

// killBecause ends the process, which may not have started yet.
func (w *worker) killBecause(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.killed = true
	if w.process != nil {
		w.why = why
		w.process.Kill()
	}
}

// giveUp is called when a connection of the worker breaks. Usually the process has died, and run
// reports how; otherwise it is killed.
func (w *worker) giveUp(why string) {
	w.router.mu.Lock()
	w.live = false
	w.router.mu.Unlock()
	time.AfterFunc(partingTime/2, func() { w.killBecause(why) })
}

func (w *worker) unfinished() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.doing)
}

func (w *worker) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.process == nil {
		return 0
	}
	return w.process.Pid
}

// lineWriter writes whole lines with a prefix.
type lineWriter struct {
	w      io.Writer
	prefix string
	takes  func(line []byte) bool // takes lines that are not to be written
	rest   []byte                 // an unfinished line
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		end := bytes.IndexByte(l.rest, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.line(l.rest[:end])
		l.rest = l.rest[end+1:]
	}
}

func (l *lineWriter) flush() {
	if len(l.rest) > 0 {
		l.line(l.rest)
		l.rest = nil
	}
}

func (l *lineWriter) line(text []byte) {
	if !l.takes(text) {
		fmt.Fprintf(l.w, "%s%s\n", l.prefix, text)
	}
}

// lockedWriter lets several workers write to one writer.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
