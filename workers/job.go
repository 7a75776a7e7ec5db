package workers

import (
	"encoding/hex"
	"errors"
	"io"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

const (
	// turnEvery is the time for which a job computes before it handles messages. Fifty yields per
	// second cost less than 0.2 % of the time, and Cancel takes effect in much less than a quarter
	// of a second.
	turnEvery     = 20 * time.Millisecond
	progressEvery = 200 * time.Millisecond
	firstSnapshot = 150 * time.Millisecond
	snapshotEvery = time.Second
)

// Errors that end a run, besides io.EOF and read errors.
var (
	errCancelled = analysis.ErrStopped
	errGone      = errors.New("no client is left to receive the result")
)

var stillRunning = profile.State{Partial: true, Reason: "the analysis is still running"}

// job is one running analysis.
type job struct {
	host   *Host
	id     uint32
	start  Start
	opened io.Closer
	file   *File         // the opened file
	whole  trace.Outline // the outline in the file's index; zero if there is no index
	size   uint64        // size of the file; 0: unknown
	runner run
	team   *team // the run's helpers; nil: no helpers
	keeper Keeper

	began     time.Time
	pausedFor time.Duration
	turn      pace
	progress  pace
	speed     speed
	snapshot  pace
	unsaved   string // the reason why no more checkpoints are saved
	saved     bool   // whether the run has saved or restored a checkpoint
	spillState
	shown   uint64 // number of references in the last snapshot
	watched uint64 // number of calls of watch
}

// run is an [analysis.Run] whose stacks can be spilled.
type run interface {
	analysis.Run
	Spill(locality.Budget) (analysis.Spec, bool)
}

// open prepares the run. If the Start message requests it, open restores the run's checkpoint.
func (j *job) open(attachment any) error {
	h := j.host
	var from *Checkpoint
	if j.start.Resume {
		var err error
		if from, err = h.loadCheckpoint(j.start.Key); err != nil {
			return err
		}
		j.start.Spec, j.start.Format = from.Spec, from.Format
	}
	file, size, err := h.OpenFile(attachment)
	if err != nil {
		return err
	}
	j.opened, j.size = file, size
	if j.file, err = NewFile(j.start.Name, file, size, from); err != nil {
		return err
	}
	reader, err := h.OpenTrace(j.start.Name, j.file, j.start.Format, j.watch)
	if err != nil {
		return j.fileError(err)
	}
	j.readIndex(reader, attachment)
	return j.prepare(reader, attachment, from)
}

// readIndex reads the index of a container, and passes it to the reader.
func (j *job) readIndex(reader trace.Reader, attachment any) {
	container, ok := reader.(interface{ Expect(trace.Outline) bool })
	if !ok || j.host.Outline == nil {
		return
	}
	if o, err := j.host.Outline(attachment); err == nil && container.Expect(o) {
		j.whole = o
	}
}

func (j *job) prepare(reader trace.Reader, attachment any, from *Checkpoint) (err error) {
	j.setLimit()
	if b := j.start.Spec.Budget; b != nil {
		if j.host.OpenShelf == nil {
			return errNoShelf
		}
		if err := j.openShelf(b, from != nil); err != nil {
			return err
		}
	}
	j.saved, j.needed = from != nil, from != nil && j.shelf != nil
	if d := j.divide(reader, attachment); d != nil {
		j.runner = d
	} else if j.runner, err = analysis.NewRunner(j.start.Spec, reader); err != nil {
		return err
	}
	if from != nil {
		if err := j.runner.Restore(from.State); err != nil {
			return &checkpointError{err}
		}
	}
	j.keeper = Keeper{
		Store: j.host.Store, Key: j.start.Key, File: j.file, Runner: j.runner, Now: j.host.Now,
		Checkpoint: Checkpoint{Name: j.start.Name, Format: j.start.Format, Spec: j.start.Spec, Size: j.size},
		Bytes:      j.host.CheckpointBytes, References: j.host.CheckpointReferences, Outside: j.bytesOutside,
	}
	j.keeper.Begin()
	return nil
}

func (j *job) close() {
	j.team.close()
	j.closeShelf()
	if j.opened != nil {
		j.opened.Close()
	}
}

// run executes the runner's steps until the run ends. It returns the reason for the end: io.EOF,
// errCancelled, errGone, or a read error.
func (j *job) run() error {
	j.host.askStorage()
	now := j.host.Now()
	j.began = now
	// Handle messages before the first step, because a Cancel may have arrived with the Start.
	j.turn = pace{least: turnEvery, next: now}
	j.progress = pace{least: progressEvery, next: now}
	j.snapshot = pace{least: snapshotEvery, next: now.Add(firstSnapshot)}
	for {
		if now := j.host.Now(); j.turn.due(now) {
			if err := j.takeTurn(); err != nil {
				return err
			}
			now = j.host.Now()
			j.turn.recordRun(now, now)
		}
		if err := j.runner.Step(); err != nil {
			if errors.Is(err, errCancelled) {
				return errCancelled
			}
			return j.fileError(err)
		}
	}
}

// fileError returns the error of the file, if there is one, in place of a decoder's error. If the
// file has not been compared with the checkpoint completely, fileError completes the comparison
// first.
func (j *job) fileError(err error) error {
	j.file.Verify()
	if wrong := j.file.Wrong(); wrong != nil {
		return wrong
	}
	return err
}

// watch reports whether the job was cancelled. Reads call it within a step, because a step may take
// long and return no records. A run cannot react to other messages within a step. While the trace
// is being opened, watch ignores a Cancel during the first reads, because the message to the user
// is more precise once the trace is open.
func (j *job) watch() error {
	const every, opening = 256, 1024 // two numbers of reads; each read requests at least 16 KiB
	if j.watched++; j.watched%every == 0 {
		j.host.Yield()
	}
	if j.runner == nil && j.watched < opening {
		return nil
	}
	if j.host.cancelled.Load() == uint64(j.id)+1 {
		return errCancelled
	}
	return nil
}

// takeTurn performs the tasks that are due between two steps.
func (j *job) takeTurn() error {
	j.host.Yield()
	if err := j.obey(); err != nil {
		return err
	}
	if j.isTooLarge() {
		j.spill()
	}
	if now := j.host.Now(); j.progress.due(now) {
		if err := j.sendProgress(nil); err != nil {
			return err
		}
		j.progress.recordRun(now, now)
	}
	// A snapshot that is due before the first reference is sent as soon as there is one.
	if begin := j.host.Now(); j.snapshot.due(begin) && j.runner.Progress().References > 0 {
		if err := j.sendSnapshot(true); err != nil {
			return err
		}
		j.snapshot.recordRun(begin, j.host.Now())
	}
	if j.wantsCheckpoint() {
		j.saveCheckpoint()
	}
	return nil
}

func (j *job) obey() error {
	if err := j.ended; err != nil {
		return err
	}
	for {
		m, ok, err := j.message()
		if !ok || err != nil {
			return err
		}
		if m.Type == TypePause && m.Job == j.id {
			err = j.pause()
		} else if m.Type != TypePause {
			err = j.handle(m)
		}
		if err != nil {
			return err
		}
	}
}

// message returns the next message, if one is waiting.
func (j *job) message() (m Message, ok bool, err error) {
	if len(j.held) > 0 {
		m, j.held = j.held[0], j.held[1:]
		return m, true, nil
	}
	select {
	case m, ok := <-j.host.inbox:
		if !ok {
			return m, false, errGone
		}
		return m, true, nil
	default:
		return m, false, nil
	}
}

// handle handles the messages that have the same meaning whether or not the job is paused.
func (j *job) handle(m Message) error {
	j.host.noteTaken(m)
	switch {
	case m.Type == TypeStart:
		j.host.pending = append(j.host.pending, m)
	case m.Type == TypeCancel && m.Job == j.id:
		return errCancelled
	case m.Type == TypeCancel:
		j.host.cancelPending(m.Job)
	}
	return nil
}

// cancelPending ends a job that has not started.
func (h *Host) cancelPending(job uint32) {
	for i, m := range h.pending {
		if m.Job == job {
			h.pending = append(h.pending[:i], h.pending[i+1:]...)
			h.fail(job, "This analysis was cancelled before it began.")
			return
		}
	}
}

// pause waits for Resume, and excludes the pause from the run's time.
func (j *job) pause() error {
	if err := j.sendProgress(func(p *Progress) { p.Paused = true }); err != nil {
		return err
	}
	begin := j.host.Now()
	j.team.broadcast(TypePause)
	defer j.team.broadcast(TypeResume)
	if err := j.sendSnapshot(false); err != nil {
		return err
	}
	for {
		m, ok := j.wait()
		if !ok {
			return errGone
		}
		if m.Type == TypeResume && m.Job == j.id {
			j.wasPaused(begin)
			return j.sendProgress(nil)
		}
		if err := j.handle(m); err != nil {
			j.wasPaused(begin)
			return err
		}
	}
}

// wait waits for the next message.
func (j *job) wait() (m Message, ok bool) {
	if m, ok, _ := j.message(); ok {
		return m, ok
	}
	m, ok = <-j.host.inbox
	return m, ok
}

func (j *job) wasPaused(begin time.Time) {
	d := j.host.Now().Sub(begin)
	j.pausedFor += d
	j.keeper.Paused(d)
}

// sendProgress sends the run's progress. If the parameter "tell" is not nil, sendProgress calls it
// with the message before sending, so that tell can change the message.
func (j *job) sendProgress(tell func(*Progress)) error {
	at := j.runner.Progress()
	p := Progress{
		Bytes:      j.file.Position(),
		TotalBytes: j.size,
		References: at.References,
		Lines:      at.Lines,
		Threads:    at.Threads,
		BadRecords: at.BadRecords,
		Memory:     j.host.Memory() + j.team.memory(),
		Storage:    j.host.storage,
		Millis:     uint64(max(0, (j.host.Now().Sub(j.began) - j.pausedFor).Milliseconds())),
		Resuming:   at.Resuming,
		Unsaved:    j.unsaved,
		Limit:      j.start.Memory,
		Beyond:     j.shelf != nil,
		Outside:    j.bytesOutside(),
		Workers:    1 + j.team.size(),
	}
	p.LeftOut = at.Skipped
	if p.Total = j.start.Spec.ToRead(j.whole.References); j.start.Spec.Limit == 0 {
		p.LeftOut += at.LeftOut
	}
	if d, ok := j.runner.(*analysis.Divided); ok {
		p.Ahead, p.Total = d.Ahead(), d.Total()
	}
	if part, _ := p.Done(); !at.Resuming {
		p.Speed = j.speed.record(part, p.Millis)
	}
	if tell != nil {
		tell(&p)
	}
	return j.send(TypeProgress, p.Encode())
}

// sendSnapshot sends the profile of the references so far, unless the last snapshot contained the
// same references. If the parameter "obeys" is set, the job also handles messages after computing
// the profile and before encoding it, because both steps take long for millions of lines.
func (j *job) sendSnapshot(obeys bool) error {
	references := j.runner.Progress().References
	if references == j.shown {
		return nil
	}
	p := j.soFar()
	if obeys {
		j.host.Yield()
		if err := j.obey(); err != nil {
			return err
		}
		if j.shown == references { // this snapshot was already sent during a pause
			return nil
		}
	}
	j.shown = references
	return j.send(TypeSnapshot, p.Encode())
}

const (
	// snapshotBytes limits the size of the exact histograms in a snapshot. The histograms take
	// about one byte for each stack distance that occurs. On the page, each distance takes about
	// forty bytes, which are not part of the run's memory limit, and the page keeps several
	// snapshots in memory.
	snapshotBytes = 1 << 20
	// snapshotDigits is the number of significant bits of rounded distances. With ten bits, there
	// are 512 distinct rounded distances between two powers of two.
	snapshotDigits = 10
)

// RoundedSnapshot is the reason in the field State of a snapshot with rounded stack distances.
// The distances are rounded down by less than 0.2 %, because exact histograms would be too
// large to send every second.
const RoundedSnapshot = "the analysis is still running; until it ends, stack distances are rounded"

// soFar returns the profile of the references so far, for a snapshot.
func (j *job) soFar() *profile.Profile {
	p := j.runner.Profile(stillRunning)
	if p.RoundDistances(snapshotBytes, snapshotDigits) {
		p.State.Reason = RoundedSnapshot
	}
	return p
}

func (j *job) send(t Type, body []byte) error {
	if j.host.Carrier.Send(Message{Type: t, Job: j.id, Body: body}) != nil {
		return errGone
	}
	return nil
}

// finish ends a job whose run ended with the given reason.
func (j *job) finish(why error) {
	if why == errGone {
		return
	}
	if why == io.EOF {
		j.conclude(profile.State{})
		return
	}
	var other *OtherFileError
	if !errors.As(why, &other) && j.file.Verifying() {
		// The checkpoint contains everything that was analysed.
		what := why.Error()
		if why == errCancelled {
			what = "Stopped before anything new was analysed"
		}
		j.host.fail(j.id, what+". The checkpoint is kept, so the analysis can be resumed again.")
		return
	}
	if errors.Is(why, profile.ErrFull) && j.saved && j.shelf != nil {
		j.host.fail(j.id, fullOutside)
		return
	}
	if errors.As(why, &other) || why != errCancelled && j.runner.Progress().References == 0 {
		j.host.fail(j.id, why.Error())
		return
	}
	j.conclude(analysis.StateAfter(why, j.runner.Progress().References))
}

// conclude stores the result and sends it.
func (j *job) conclude(state profile.State) {
	if j.sendProgress(func(p *Progress) { p.Ending = true }) != nil {
		return
	}
	j.host.Yield()
	p := j.runner.Finish(state)
	data := p.Encode()
	digest, _ := profile.EncodedDigest(data)
	e := profile.Entry{
		Key: j.start.Key, Name: j.start.Name, Created: j.host.Now().UnixMilli(),
		Bytes: uint64(len(data)), References: p.Totals.AllReferences(), Digest: hex.EncodeToString(digest[:]),
		State: profile.EntryComplete,
	}
	if state.Partial {
		e.State, e.Reason = profile.EntryPartial, state.Reason
	}
	if j.shelf != nil && e.Reason == "" {
		e.Reason = leftOut
	}
	problem := j.host.put(e, data)
	if j.deleteShelf() && problem != "" { // deleting the spill store has freed space
		problem = j.host.put(e, data)
	}
	done := Done{Key: e.Key, Digest: e.Digest, Kept: problem == "", Problem: problem, Profile: data}
	_ = j.send(TypeDone, done.Encode())
}
