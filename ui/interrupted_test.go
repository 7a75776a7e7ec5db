package ui

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

// TestInterruptedNote checks that the first screen says how to resume an interrupted analysis, and
// that the button beside this text resumes the analysis.
func TestInterruptedNote(t *testing.T) {
	k := &keeper{files: map[string]File{}}
	d := interruptedWith(t, k)
	wantsNote := func(words ...string) {
		t.Helper()
		d.app.Refresh()
		for _, want := range append(words, "The analysis of a.lackey.lz4 was interrupted at") {
			if !strings.Contains(d.interrupted, want) {
				t.Errorf("note on the first screen = %q, want a text with: %s", d.interrupted, want)
			}
		}
		if !d.resumable {
			t.Error("the analysis cannot be resumed with the button beside the note")
		}
	}
	wantsNote("Press “resume”", "may ask whether this page may read the file")
	for key := range k.files {
		k.Forget(key)
	}
	wantsNote("To resume it where it stopped, choose a.lackey.lz4 again")
	d.app.Handles = nil
	wantsNote("This browser does not let a page open a file again", "choose a.lackey.lz4 again, or drop it on this page.")

	d.app.ResumeLatest()
	if d.picked != 1 {
		t.Errorf("opened file pickers = %d, want 1", d.picked)
	}
	d.app.Offer(textItem())
	if e := d.entries(); len(e) != 1 || e[0].State != profile.EntryComplete || e[0].Digest != digestOfText(t) {
		t.Errorf("kept analyses = %+v, want one complete analysis", e)
	}
	d.app.Navigate("")
	if d.interrupted != "" {
		t.Errorf("note after the end of the analysis = %q, want none", d.interrupted)
	}
}

// TestInterruptedBeforeCheckpoint checks that the first screen names an analysis whose page was
// killed before the first checkpoint. While the analysis runs in another tab, the first screen must
// not name it.
func TestInterruptedBeforeCheckpoint(t *testing.T) {
	w := newWindow()
	first := w.open(t, nil)
	first.checkpointBytes = 0
	hold := make(chan bool)
	first.fileOf = func(content []byte) io.Reader { <-hold; return bytes.NewReader(content) }
	first.remembered = map[string]string{}
	ended := make(chan bool)
	go func() { first.app.Offer(textItem()); close(ended) }()
	started := func(d *desk) (text string) {
		d.act(func() { text = d.remembered[startedText] })
		return text
	}
	note := func(d *desk) (text string, resumable bool) {
		d.app.Refresh()
		d.act(func() { text, resumable = d.interrupted, d.resumable })
		return text, resumable
	}
	until(t, func() bool { return started(first) != "" })

	second := w.open(t, first)
	list := started(first)
	second.act(func() { second.remembered = map[string]string{startedText: list} })
	if text, _ := note(second); text != "" {
		t.Errorf("note about an analysis that is running = %q, want none", text)
	}
	w.mu.Lock()
	clear(w.owner) // as if the first tab had been killed
	w.mu.Unlock()
	for range 2 {
		if text, resumable := note(second); !strings.Contains(text, "a.lackey.lz4 was interrupted before its first checkpoint") || resumable {
			t.Errorf("note after the tab was killed = %q, want that the analysis was interrupted before its first checkpoint", text)
		}
	}
	if left := started(second); left != "" {
		t.Errorf("list of started analyses = %q, want none", left)
	}

	close(hold)
	<-ended
	if left := started(first); left != "" {
		t.Errorf("list of started analyses after the end of the analysis = %q, want none", left)
	}
}

// TestSeveralInterrupted checks that the note names the latest of several interrupted analyses.
func TestSeveralInterrupted(t *testing.T) {
	d := newDesk(t)
	nothing := func(io.Writer) error { return nil }
	for i, name := range []string{"first", "second", "third"} {
		if err := d.store.Save(profile.Entry{Key: name, Name: name, Created: int64(i), Done: .5}, nothing); err != nil {
			t.Fatal(err)
		}
	}
	d.app.Refresh()
	if !strings.HasPrefix(d.interrupted, "The analysis of third ") || !strings.HasSuffix(d.interrupted, "2 other interrupted analyses are in the list below.") {
		t.Errorf("note = %q, want the third analysis and two others", d.interrupted)
	}
}
