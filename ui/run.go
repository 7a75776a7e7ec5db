package ui

import (
	"cmp"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/ui/state"
	"github.com/stackglass/stackglass/workers"
)

// job is the job number. It is always 1, because the page uses each carrier for only one job.
const job = 1

// profileHead is the number of leading bytes that are sufficient to recognise a profile.
const profileHead = 64

// errWorkerEnded is the reason why a profile is partial if its worker died.
var errWorkerEnded = errors.New("the worker died")

// errLeft is the reason why a run ended in a page that the user has left. The browser may restore
// such a page.
var errLeft = errors.New("you left the page, which ended its analyses")

// run is one running analysis.
type run struct {
	key, name string
	carrier   workers.Carrier
	progress  workers.Progress
	cores     [][]uint32       // the groups of threads that the user chose
	pausing   bool             // whether a Pause or Resume message was sent and has not been answered yet
	stopping  bool             // whether a Cancel message was sent
	snapshot  []byte           // the last snapshot, still encoded
	growing   *profile.Profile // the last snapshot, decoded
	leave     chan struct{}    // closed to stop watching the tab that runs the analysis; nil: this tab runs it
	release   func()           // ends this tab's ownership of the analysis, so that other tabs can take over
	left      bool             // whether the user has left the page
}

// Offer opens a dropped or picked file, or a demo. Offer imports a profile, or analyses a trace: at
// once, or after the running analysis has ended.
func (a *App) Offer(item Item) {
	a.update(func() {
		if !item.More && a.run == nil {
			a.Problem = ""
		}
		a.Note = ""
	})
	if item.Demo != "" {
		if key := a.keptDemo(item); key != "" && !item.again {
			a.openKept(key, item)
			return
		}
		file, err := a.Port.Fetch(item.URL, item.Demo)
		if err != nil {
			a.update(func() {
				a.addProblem("The demo could not be loaded (" + err.Error() + "). Once the page is stored for offline use, it needs no network.")
			})
			return
		}
		item.File = file
		item.File.Name = item.Title
	}
	if item.Demo == "" && a.takeMachine(item.File) {
		return
	}
	if a.isSourceFile(item.File.Name) {
		a.takeSource(item.File)
		return
	}
	head, err := item.File.Read(profileHead)
	if err == nil && isModule(item.File.Name, head) {
		a.takeModule(item.File)
		return
	}
	if err == nil && isProbabilities(head) {
		a.takeProbabilities(item.File)
		return
	}
	if err == nil && profile.IsProfile(head) || strings.HasSuffix(item.File.Name, ".sgp") {
		a.importProfile(item.File)
		return
	}
	a.takePart(&item)
	if key := a.keptFile(item); item.Demo == "" && key != "" {
		a.update(func() {
			if a.items == nil {
				a.items = map[string]Item{}
			}
			a.items[key] = item
		})
		a.openKept(key, item)
		return
	}
	busy := false
	a.update(func() {
		if busy = a.run != nil; busy {
			a.waiting = append(a.waiting, item)
			a.Port.Announce(a.Waiting())
			return
		}
		a.run = &run{name: item.File.Name} // prevents another run from starting
	})
	if !busy {
		a.analyse(item)
	}
}

// importProfile stores a profile from a file and opens it.
func (a *App) importProfile(file File) {
	data, err := file.Read(0)
	if err != nil {
		a.update(func() { a.addProblem(file.Name + " could not be imported: " + err.Error() + ".") })
		return
	}
	a.importData(file.Name, data, state.TabDiagnosis)
}

// importData stores an encoded profile and opens it on a tab.
func (a *App) importData(from string, data []byte, tab state.Tab) {
	p, err := profile.Decode(data)
	if err != nil {
		a.update(func() { a.addProblem(from + " could not be imported: " + err.Error() + ".") })
		return
	}
	digest := digestOf(p)
	name := strings.TrimSuffix(from, ".sgp")
	e := profile.Entry{
		Key: "p" + digest[:16], Name: name, Created: a.Port.Now().UnixMilli(), Bytes: uint64(len(data)),
		References: p.Totals.AllReferences(), Digest: digest, State: profile.EntryComplete, Reason: p.State.Reason,
	}
	if p.State.Partial {
		e.State = profile.EntryPartial
	}
	problem := a.put(e, data)
	a.update(func() {
		a.addProblem(problem)
		a.origin = ""
		a.Note = ""
		a.Screen = state.Screen{Open: e.Key, Tab: tab}
		a.Port.SetHash(a.Screen.Hash(), false)
		a.Port.ShowFirst(false)
		a.present(&Result{Key: e.Key, Name: name, Digest: digest, Profile: p})
		a.Port.Focus("result-title")
		a.compareOpened(e.Key)
	})
	a.reload()
}

func digestOf(p *profile.Profile) string {
	sum := p.Digest()
	return hex.EncodeToString(sum[:])
}

// put stores a profile. If the profile cannot be stored, put returns a sentence that explains why.
func (a *App) put(e profile.Entry, data []byte) string {
	if a.Store == nil {
		return a.NoStore
	}
	if err := a.Store.Put(e, data); err != nil {
		return e.Name + " is shown, but is not kept (" + err.Error() + "). Earlier analyses are still kept. To keep this analysis, export it."
	}
	return ""
}

// analyse runs one analysis to its end, and then analyses the waiting items.
func (a *App) analyse(item Item) {
	var spec analysis.Spec
	var err error
	a.update(func() {
		if item.part.of == "" {
			item.part = a.partOf(a.wanted)
		}
		spec, err = a.spec(item, a.Port.Settings())
	})
	if err != nil {
		a.abort("The settings cannot be used: " + err.Error() + ".")
		return
	}
	if a.Tabs != nil {
		a.reload() // another tab may have stored a result
	}
	key, resume := a.keyFor(item, spec)
	name := item.File.Name
	if item.part.of != "" {
		name = item.part.title()
	}
	if !resume {
		name = a.freeName(name)
	}
	release, over := a.acquire(item, key, name)
	if over {
		a.startNext()
		return
	}
	if e, ok := a.entry(key); ok {
		resume = e.State == profile.EntryInterrupted
	}
	a.keepFile(key, item.File)
	release = sync.OnceFunc(release)
	a.update(func() { a.run.release = release })
	a.runOwned(item, spec, key, name, resume)
	release()
	a.reload()
	a.tell()
	a.startNext()
}

// runOwned runs one analysis to its end.
func (a *App) runOwned(item Item, spec analysis.Spec, key, name string, resume bool) {
	carrier, err := a.Port.Connect(spec)
	if err != nil {
		a.update(func() {
			a.run = nil
			a.addProblem("No worker could be started (" + err.Error() + "). Reload the page. Kept analyses are not affected.")
		})
		return
	}
	a.update(func() {
		a.run.key, a.run.name, a.run.carrier, a.run.cores = key, name, carrier, spec.Cores
		a.wanted, a.lost, a.origin = "", "", ""
		if item.Demo != "" {
			a.origin = demoPrefix + item.Demo
		} else {
			a.recordStart(key, name)
		}
		if a.items == nil {
			a.items = map[string]Item{}
		}
		a.items[key] = item
		before := a.Screen
		if item.again {
			a.Screen = a.Screen.Anew(key)
			a.Screen.Tab, a.Screen.Groups, a.Screen.SharedBytes, a.Screen.OwnBytes = before.Tab, before.Groups, before.SharedBytes, before.OwnBytes
		} else {
			a.Screen = a.screenOf(item, key)
		}
		a.Port.SetHash(a.Screen.Hash(), item.link && !item.again)
		a.Port.ShowFirst(false)
		a.present(&Result{Key: key, Name: name, Live: true})
		if len(a.Port.Settings().LineBytes) == 0 {
			a.Note = "No line size is selected in the settings, so 64-byte lines are used."
		}
		a.Port.Announce("Analysing " + name)
		a.Port.Focus("result-title")
	})
	start := workers.Start{Key: key, Name: name, Format: a.Port.Settings().Format, Spec: spec, Resume: resume, Memory: a.Port.Settings().MemoryBytes(), Workers: a.Port.Settings().WorkerCount()}
	err = carrier.Send(workers.Message{Type: workers.TypeStart, Job: job, Body: start.Encode(), Attachment: item.File.Ref})
	for err == nil {
		var m workers.Message
		if m, err = carrier.Receive(); err == nil && a.receive(m) {
			break
		}
	}
	if err != nil {
		a.endLost(err)
	}
	a.update(func() { a.recordEnd(key) })
	// Ending the worker releases its memory.
	_ = carrier.Close()
}

// CanRepeat reports whether the trace of the result in view can be read again, which requires that
// the trace was opened since the page was loaded.
func (a *App) CanRepeat() bool {
	_, known := a.items[a.result.Key]
	return known && !a.result.Live
}

// Repeat analyses the trace of the result in view again, and measures, for each site, the misses in
// the current hierarchy.
func (a *App) Repeat() {
	if item, known := a.items[a.result.Key]; known {
		a.repeat(item)
	}
}

// RepeatWith analyses the trace of the result in view again, with additional analyses.
func (a *App) RepeatWith(more analysis.Analyses) {
	if item, known := a.items[a.result.Key]; known {
		item.analyses |= more
		a.repeat(item)
	}
}

// RepeatForLoops analyses the trace of the result in view again, and also creates the
// loop-compressed trace.
func (a *App) RepeatForLoops() { a.RepeatWith(analysis.Loops) }

// RepeatFor analyses the trace of the result in view again, for groups of threads that share a
// cache.
func (a *App) RepeatFor(groups [][]uint32) {
	if item, known := a.items[a.result.Key]; known {
		item.needs = groups
		a.repeat(item)
	}
}

// repeat analyses an item again, with the groups of threads in view.
func (a *App) repeat(item Item) { go a.Offer(a.withThreads(item)) }

// withThreads returns the item that analyses an item again, with the groups of threads in view.
func (a *App) withThreads(item Item) Item {
	item.More, item.again = false, true
	if t := a.threads(); t != nil {
		item.domains = t.Domains(a.groups())
	}
	for _, group := range item.needs {
		if !slices.ContainsFunc(item.domains, func(threads []uint32) bool { return slices.Equal(threads, group) }) {
			item.domains = append(item.domains, group)
		}
	}
	return item
}

// abort ends a run before it has started, and shows the problem.
func (a *App) abort(problem string) {
	a.update(func() {
		a.run = nil
		a.addProblem(problem)
	})
	a.startNext()
}

// Waiting returns a sentence with the names of the files dropped during the run, or "".
func (a *App) Waiting() string {
	if len(a.waiting) == 0 {
		return ""
	}
	text := a.waiting[0].File.Name + " is next"
	for _, item := range a.waiting[1:] {
		text += ", then " + item.File.Name
	}
	return text + "."
}

// addProblem adds a problem to the list on the page. The caller holds the lock.
func (a *App) addProblem(problem string) { a.Problem = state.AddProblem(a.Problem, problem) }

// startNext starts the analysis of the next waiting item.
func (a *App) startNext() {
	var item Item
	found := false
	a.update(func() {
		if found = len(a.waiting) > 0 && a.run == nil; found {
			item = a.waiting[0]
			a.waiting = append([]Item(nil), a.waiting[1:]...) // a copy, so that the file can be freed
			a.run = &run{name: item.File.Name}
		}
	})
	if found {
		a.analyse(item)
	}
}

// fileKey returns a key that depends on a file and the settings of its analysis.
func fileKey(file File, spec analysis.Spec) string {
	h := fnv.New64a()
	h.Write([]byte(file.Name + "\x00" + strconv.FormatUint(file.Bytes, 10) + "\x00" +
		strconv.FormatInt(file.Modified, 10) + "\x00" + state.SpecKey(spec)))
	return "t" + strconv.FormatUint(h.Sum64(), 16)
}

// keptFile returns the key of a complete stored analysis of the given file with the settings of the
// form, or "" if there is no such analysis. keptFile may block.
func (a *App) keptFile(item Item) (key string) {
	if item.again || item.File.Modified == 0 {
		return ""
	}
	a.update(func() {
		if spec, err := a.spec(item, a.Port.Settings()); err == nil {
			key = fileKey(item.File, spec)
		}
	})
	if e, ok := a.entry(key); !ok || e.State != profile.EntryComplete {
		return ""
	}
	return key
}

// keyFor returns a key that depends on the file and the settings of its analysis. If the user drops
// the same file again, the interrupted analysis is found under this key. If the key belongs to a
// complete analysis, keyFor returns a different key, so that no result is replaced.
func (a *App) keyFor(item Item, spec analysis.Spec) (key string, resume bool) {
	base := fileKey(item.File, spec)
	taken := map[string]profile.EntryState{}
	var wanted string
	a.update(func() {
		if item.Demo != "" || item.part.of != "" {
			base = a.demoKey(item, spec)
		}
		for _, e := range a.kept {
			taken[e.Key] = e.State
		}
		wanted = a.wanted
	})
	if taken[wanted] == profile.EntryInterrupted {
		return wanted, true // the worker checks that it is the same file
	}
	key = base
	for n := 2; taken[key] != ""; n++ {
		if taken[key] == profile.EntryInterrupted {
			return key, true
		}
		key = base + "-" + strconv.Itoa(n)
	}
	return key, false
}

// freeName returns a name that no other analysis has, so that names in lists are unique. freeName
// returns app (2).lackey.lz4 if there is already an app.lackey.lz4. The number precedes the
// extensions, which determine the format.
func (a *App) freeName(name string) string {
	taken := map[string]bool{}
	a.update(func() {
		for _, e := range a.kept {
			taken[e.Name] = true
		}
	})
	stem, endings := cutEndings(name)
	free := name
	for n := 2; taken[free]; n++ {
		free = stem + " (" + strconv.Itoa(n) + ")" + endings
	}
	return free
}

// cutEndings divides the name of a file before its extensions.
func cutEndings(name string) (stem, endings string) {
	if i := strings.IndexByte(name, '.'); i > 0 {
		return name[:i], name[i:]
	}
	return name, ""
}

// receive handles one message and reports whether it was the last message.
func (a *App) receive(m workers.Message) (last bool) {
	switch m.Type {
	case workers.TypeProgress:
		p, err := workers.DecodeProgress(m.Body)
		if err != nil {
			return a.refuse(err)
		}
		key := a.progress(p)
		if a.Tabs != nil {
			a.Tabs.Tell(key, m.Body)
		}
	case workers.TypeSnapshot:
		p, err := profile.Decode(m.Body)
		if err != nil {
			return a.refuse(err)
		}
		a.Port.Breathe()
		a.update(func() {
			a.run.snapshot, a.run.growing = m.Body, p
			if r := a.result; r != nil && r.Key == a.run.key {
				r.Profile = p
				r.show(a.Screen.LineBytes)
				a.drawCharts()
			}
		})
	case workers.TypeDone:
		d, err := workers.DecodeDone(m.Body)
		if err != nil {
			return a.refuse(err)
		}
		return a.done(d)
	case workers.TypeFailed:
		f, err := workers.DecodeFailed(m.Body)
		if err != nil {
			return a.refuse(err)
		}
		a.update(func() { a.fail(strings.ReplaceAll(f.Problem, "--input-format", "“Format” in the settings")) })
		return true
	}
	return false
}

// progress shows the progress of the run, and returns the run's key. It is called five times a
// second. If only the numbers of the bar change, it writes the numbers directly, which is a
// hundred times faster than rendering the page.
func (a *App) progress(p workers.Progress) (key string) {
	a.Env.Lock()
	if p.Beyond && !a.run.progress.Beyond {
		a.Note = state.BeyondNote(a.run.name, p)
		a.Port.Announce(a.Note)
		a.touch()
	}
	before, now := state.NewRunBar(a.run.progress), state.NewRunBar(p)
	same := !a.changed && !a.run.pausing && before.SameForm(now)
	a.run.progress, a.run.pausing = p, false
	key = a.run.key
	if same && a.Port.ShowProgress(now) {
		a.Env.UnlockOnly()
		return key
	}
	a.touch()
	a.Env.UnlockRender()
	return key
}

func (a *App) refuse(err error) (last bool) {
	a.update(func() { a.fail(err.Error()) })
	return true
}

func (a *App) done(d workers.Done) (last bool) {
	p, err := profile.Decode(d.Profile)
	if err != nil {
		return a.refuse(err)
	}
	a.Port.Breathe()
	a.update(func() {
		r := &Result{Key: d.Key, Name: a.run.name, Digest: d.Digest, Profile: p}
		asked, absent := a.run.stopping, state.AbsentThreads(p, a.run.cores)
		a.run = nil
		a.addProblem(d.Problem)
		words := "The analysis of " + r.Name + " is complete."
		if p.State.Partial {
			words = "The analysis of " + r.Name + " is partial: " + p.State.Reason + "."
			if d.Problem == "" && !asked {
				a.addProblem(upperFirst(words))
			}
		}
		if a.Screen.Open == d.Key {
			a.present(r)
			a.compareOpened(d.Key)
			a.Note = cmp.Or(absent, a.Note)
		} else {
			a.Note = words
		}
		a.Port.Announce(words)
	})
	return true
}

// fail ends the run without a result. The caller holds the lock.
func (a *App) fail(problem string) {
	a.addProblem(problem)
	if r := a.result; r != nil && r.Key == a.run.key {
		if r.Profile != nil {
			r.Live = false
		} else {
			a.result = nil
			a.Screen = state.Screen{}
			a.Port.SetHash("", true)
			a.Port.ShowFirst(true)
		}
	}
	a.run = nil
	a.Port.Announce(problem)
}

// endLost ends a run whose worker died. It stores the last snapshot unless the run can be resumed from
// a checkpoint.
func (a *App) endLost(err error) {
	var key, name string
	var snapshot []byte
	a.update(func() {
		key, name, snapshot = a.run.key, a.run.name, a.run.snapshot
		if a.run.left {
			err, snapshot = errLeft, nil // another tab may be running the analysis now
		}
	})
	problem := name + ": " + err.Error() + "."
	e, kept := a.entry(key)
	switch {
	case kept && e.State != profile.EntryInterrupted:
		// The worker had stored its result, but died before it reported the result.
		a.endRun(key)
		return
	case kept:
		problem += " The work up to the last checkpoint and all other analyses are kept: resume the analysis from the list."
	case snapshot == nil:
		problem += " The analysis had no result yet. Analyse the trace again, analyse a part of it, or use the command."
	default:
		problem += a.keepSnapshot(key, name, snapshot)
	}
	a.update(func() { a.fail(problem) })
}

// keepSnapshot stores the last snapshot of a lost run, marked as partial, and returns a sentence
// about it.
func (a *App) keepSnapshot(key, name string, snapshot []byte) string {
	p, err := profile.Decode(snapshot)
	if err != nil {
		return ""
	}
	rounded := p.State.Reason == workers.RoundedSnapshot
	p.State = analysis.StateAfter(errWorkerEnded, p.Totals.AllReferences())
	if rounded {
		p.State.Reason += "; long stack distances are rounded down by up to 0.2 %"
	}
	data, digest := p.Encode(), digestOf(p)
	e := profile.Entry{
		Key: key, Name: name, Created: a.Port.Now().UnixMilli(), Bytes: uint64(len(data)),
		References: p.Totals.AllReferences(), Digest: digest, State: profile.EntryPartial, Reason: p.State.Reason,
	}
	if problem := a.put(e, data); problem != "" {
		return " " + problem
	}
	a.update(func() {
		if r := a.result; r != nil && r.Key == key {
			r.Profile, r.Digest = p, digest
			r.show(a.Screen.LineBytes)
		}
	})
	return " The partial result is kept."
}

// sendCommand sends a command to the running worker.
func (a *App) sendCommand(t workers.Type) {
	if a.run == nil || a.run.carrier == nil {
		return
	}
	if err := a.run.carrier.Send(workers.Message{Type: t, Job: job}); err != nil {
		a.Problem = "The worker does not answer: " + err.Error() + "."
	}
	a.touch()
}

// PauseOrResume pauses or resumes the run.
func (a *App) PauseOrResume() {
	if a.run == nil {
		return
	}
	a.run.pausing = true
	if a.run.progress.Paused {
		a.sendCommand(workers.TypeResume)
	} else {
		a.sendCommand(workers.TypePause)
	}
}

// Cancel ends the run, and stores its counts up to this point as a partial analysis.
func (a *App) Cancel() {
	if a.run == nil || a.run.stopping {
		return
	}
	a.run.stopping = true
	if a.run.leave != nil {
		close(a.run.leave)
		a.touch()
		return
	}
	a.sendCommand(workers.TypeCancel)
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
