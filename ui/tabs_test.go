package ui

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/workers"
)

// A window is a simulated browser with several tabs.
type window struct {
	mu    sync.Mutex
	freed sync.Cond
	owner map[string]*tabOf
	tabs  []*tabOf
}

// tabOf is one of the tabs in a window.
type tabOf struct {
	window *window
	app    *App
}

func newWindow() *window {
	w := &window{owner: map[string]*tabOf{}}
	w.freed.L = &w.mu
	return w
}

// The method "open" returns a desk in another tab that uses the same store.
func (w *window) open(t *testing.T, first *desk) *desk {
	d := newDesk(t)
	if first != nil {
		d.store = first.store
		d.app.Store = first.store
	}
	tab := &tabOf{w, d.app}
	w.tabs = append(w.tabs, tab)
	d.app.Tabs = tab
	d.checkpointBytes = 16 << 10
	return d
}

func (o *tabOf) Own(key string) func() {
	o.window.mu.Lock()
	defer o.window.mu.Unlock()
	return o.take(key)
}

func (o *tabOf) take(key string) func() {
	if o.window.owner[key] != nil {
		return nil
	}
	o.window.owner[key] = o
	return func() {
		o.window.mu.Lock()
		defer o.window.mu.Unlock()
		delete(o.window.owner, key)
		o.window.freed.Broadcast()
	}
}

func (o *tabOf) Await(key string, leave <-chan struct{}) func() {
	left := false
	go func() {
		<-leave
		o.window.mu.Lock()
		defer o.window.mu.Unlock()
		left = true
		o.window.freed.Broadcast()
	}()
	o.window.mu.Lock()
	defer o.window.mu.Unlock()
	for !left {
		if release := o.take(key); release != nil {
			return release
		}
		o.window.freed.Wait()
	}
	return nil
}

func (o *tabOf) Owned() map[string]bool {
	o.window.mu.Lock()
	defer o.window.mu.Unlock()
	owned := map[string]bool{}
	for key := range o.window.owner {
		owned[key] = true
	}
	return owned
}

func (o *tabOf) Tell(key string, progress []byte) {
	for _, other := range o.window.tabs {
		if other != o {
			go other.app.Heard(key, bytes.Clone(progress))
		}
	}
}

// deathOnCommand is a carrier whose worker dies when the test requests it.
type deathOnCommand struct {
	workers.Carrier
	die <-chan struct{}
}

func (c *deathOnCommand) Receive() (m workers.Message, err error) {
	arrived := make(chan struct{})
	go func() {
		m, err = c.Carrier.Receive()
		close(arrived)
	}()
	select {
	case <-c.die:
		c.Carrier.Close()
		<-arrived
		return workers.Message{}, &workers.DeadError{Code: -1, Why: "the test killed it"}
	case <-arrived:
		return m, err
	}
}

// twoTabs starts an analysis in one tab, and opens a second tab that shows its progress. The first
// tab's worker dies when the channel "die" is closed. The parameter "pause" determines how long the
// analysis takes: the file is read in about 800 parts, with a pause before each part.
func twoTabs(t *testing.T, pause time.Duration) (first, second *desk, die chan struct{}, ended [2]chan struct{}) {
	w := newWindow()
	first = w.open(t, nil)
	second = w.open(t, first)
	die = make(chan struct{})
	slowly := func(content []byte) io.Reader { return &slow{bytes.NewReader(content), pause} }
	first.fileOf = slowly
	first.connect = func() (workers.Carrier, error) {
		c, err := first.host()
		return &deathOnCommand{Carrier: c, die: die}, err
	}
	for i, d := range []*desk{first, second} {
		ended[i] = make(chan struct{})
		go func() {
			d.app.Offer(textItem())
			close(ended[i])
		}()
		want := []string{`id="run-pause"`, "Stop watching"}[i]
		until(t, func() bool { return strings.Contains(d.html(), want) && len(first.entries()) == 1 })
	}
	return first, second, die, ended
}

func digestOfText(t *testing.T) string {
	whole := newDesk(t)
	whole.app.Offer(textItem())
	return whole.entries()[0].Digest
}

func TestSecondTabTakesOver(t *testing.T) {
	// The analysis must not end before the test ends the worker, even if the test is delayed.
	first, second, die, ended := twoTabs(t, 5*time.Millisecond)
	second.wants("is being analysed in another tab", "Stop watching", "The result will also be shown here once it is complete")
	until(t, func() bool {
		progress := second.html()
		return !strings.Contains(progress, `<b id="run-references">0</b>`)
	})
	close(die)
	<-ended[0]
	<-ended[1]
	first.wants("resume the analysis from the list")
	e := second.entries()
	if len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != digestOfText(t) {
		t.Errorf("kept: %+v", e)
	}
	second.wants(`class="chip complete"`)
}

// TestSuspendedPageEndsItsRuns checks that a page ends its runs when the browser suspends it, and
// reports this when it is restored.
func TestSuspendedPageEndsItsRuns(t *testing.T) {
	first, second, _, ended := twoTabs(t, 5*time.Millisecond)
	first.app.Leave()
	<-ended[0]
	<-ended[1]
	first.wants("you left the page")
	e := second.entries()
	if len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != digestOfText(t) {
		t.Errorf("kept: %+v", e)
	}
	second.app.Leave() // no analysis is running in the second tab any more
}

func TestSuspendedPageStopsWatching(t *testing.T) {
	_, second, _, ended := twoTabs(t, time.Millisecond)
	second.app.Leave()
	<-ended[1]
	<-ended[0]
}

func TestSecondTabOpensTheResult(t *testing.T) {
	first, second, _, ended := twoTabs(t, time.Millisecond)
	<-ended[0]
	<-ended[1]
	e := second.entries()
	if len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != digestOfText(t) {
		t.Errorf("kept: %+v", e)
	}
	first.wants(`class="chip complete"`)
	second.wants(`class="chip complete"`)
}

func TestStopWatching(t *testing.T) {
	_, second, _, ended := twoTabs(t, time.Millisecond)
	second.act(second.app.Cancel)
	second.act(second.app.Cancel) // the user presses the button twice
	<-ended[1]
	if second.app.Screen.Open != "" || !second.first {
		t.Errorf("screen after Cancel = %+v, want the first screen", second.app.Screen)
	}
	second.app.Refresh()
	second.wants("running in another tab")
	if page := second.html(); strings.Contains(page, "resume a.lackey") || strings.Contains(page, "delete a.lackey") {
		t.Errorf("the page offers to resume or delete an analysis that is running in another tab:\n%s", page)
	}
	<-ended[0]
	until(t, func() bool { return strings.Contains(second.html(), `id="open-`) })
}

// TestInvalidMessagesFromAnotherTab checks that invalid messages from another tab cause no harm.
func TestInvalidMessagesFromAnotherTab(t *testing.T) {
	first, second, die, ended := twoTabs(t, time.Millisecond)
	for _, body := range [][]byte{nil, {}, {0}, {255, 255}, bytes.Repeat([]byte{0xff}, 1000)} {
		second.app.Heard("", body)
		second.app.Heard("other", body)
		second.app.Heard(second.app.run.key, body)
		first.app.Heard(first.app.run.key, body)
	}
	second.wants("Stop watching")
	close(die)
	<-ended[0]
	<-ended[1]
}

// The type "keeper" is an implementation of Handles that keeps files in memory.
type keeper struct {
	mu    sync.Mutex
	files map[string]File
	err   error // the error that the method Reopen returns
}

func (k *keeper) Keep(key string, f File) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.files[key] = f
}

func (k *keeper) Keys() (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.files {
		keys = append(keys, key)
	}
	return keys
}

func (k *keeper) Reopen(key string) (File, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.files[key], k.err
}

func (k *keeper) Forget(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.files, key)
}

// interruptedWith returns a desk with an interrupted analysis. The browser can reopen the file of
// this analysis.
func interruptedWith(t *testing.T, k *keeper) *desk {
	d := newDesk(t)
	d.app.Handles = k
	d.checkpointBytes = 16 << 10
	d.fileOf = func(content []byte) io.Reader { return &slow{bytes.NewReader(content), time.Millisecond} }
	d.connect = func() (workers.Carrier, error) {
		c, err := d.host()
		return &dying{Carrier: c, ready: func() bool { return len(d.entries()) > 0 && len(k.Keys()) > 0 }}, err
	}
	item := textItem()
	item.File.Handle = "a handle"
	d.app.Offer(item)
	d.connect, d.fileOf = d.host, nil
	d.app.Navigate("")
	return d
}

func TestOneClickResumes(t *testing.T) {
	k := &keeper{files: map[string]File{}}
	d := interruptedWith(t, k)
	k.Keep("of a deleted analysis", File{})
	d.app.Refresh()
	if len(k.Keys()) != 1 {
		t.Errorf("keys of stored handles = %q, want 1", k.Keys())
	}
	d.act(func() { d.app.GoOn(d.app.Rows()[0]) })
	until(t, func() bool { return d.entries()[0].State == profile.EntryComplete })
	if e := d.entries(); d.picked != 0 || len(e) != 1 || e[0].Digest != digestOfText(t) {
		t.Errorf("opened file pickers = %d, kept analyses = %+v; want none and one complete analysis", d.picked, e)
	}
	until(t, func() bool { return len(k.Keys()) == 0 })
}

func TestFileAccessDenied(t *testing.T) {
	k := &keeper{files: map[string]File{}, err: errors.New("not allowed")}
	d := interruptedWith(t, k)
	d.act(func() { d.app.GoOn(d.app.Rows()[0]) })
	until(t, func() bool { return strings.Contains(d.html(), "could not be opened again (not allowed)") })
	if strings.Contains(d.html(), "may ask whether") {
		t.Error("the page still says that the browser may ask for permission")
	}
	d.act(func() { d.app.GoOn(d.app.Rows()[0]) })
	if d.picked != 1 {
		t.Errorf("picked %d times", d.picked)
	}
	d.app.Offer(textItem())
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryComplete {
		t.Errorf("kept %+v", e)
	}
}

// TestWorkerDiesAfterStoringResult checks that nothing is lost if a worker dies after it has stored
// its result but before it has reported the result.
func TestWorkerDiesAfterStoringResult(t *testing.T) {
	d := newDesk(t)
	d.connect = func() (workers.Carrier, error) {
		c, err := d.host()
		return &mute{c}, err
	}
	d.app.Offer(textItem())
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != digestOfText(t) {
		t.Errorf("kept: %+v", e)
	}
	d.wants(`class="chip complete"`)
}

// The type "mute" is a carrier whose worker dies instead of reporting that it has finished.
type mute struct{ workers.Carrier }

func (c *mute) Receive() (workers.Message, error) {
	m, err := c.Carrier.Receive()
	if m.Type == workers.TypeDone {
		return workers.Message{}, &workers.DeadError{Code: -1, Why: "the test killed it"}
	}
	return m, err
}
