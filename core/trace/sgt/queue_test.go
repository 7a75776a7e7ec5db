package sgt

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQueueMatchesTokens checks that the decoded steps equal the written steps, whether the decoder
// expands tokens into the queue or reads them one by one.
func TestQueueMatchesTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &decoder{}
		var want []stepAfterRun
		for range rapid.IntRange(1, 400).Draw(t, "tokens") {
			run := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64Range(0, 300)).Draw(t, "run")
			s := stepAfterRun{follows: rapid.Uint64Range(0, followsNew).Draw(t, "follows")}
			s.misses = rapid.Uint64Max(1<<rapid.SampledFrom([]uint{1, 3, 10, 24, 25, 48}).Draw(t, "values")-1).Draw(t, "misses")
			d.content = appendPrefix(d.content, s.misses<<4|min(run, longRun)<<2|s.follows)
			if run >= longRun {
				d.content = appendPrefix(d.content, run-longRun)
			}
			if s.follows == followsNew {
				s.off = rapid.Uint64Max(1<<rapid.SampledFrom([]uint{3, 31, 32, 33, 63}).Draw(t, "bits")).Draw(t, "off")
				d.content = appendPrefix(d.content, s.off)
			}
			want = append(want, make([]stepAfterRun, run)...)
			want = append(want, s)
		}
		d.controlEnd = len(d.content)
		d.content = append(d.content, make([]byte, slack)...)
		d.steps = uint64(len(want))
		got := expanded(t, d)
		if !slices.Equal(got, want) {
			t.Fatalf("got\n%v\nwant\n%v", got, want)
		}
	})
}

// expanded returns all steps in the control part of a decoder's chunk.
func expanded(t failer, d *decoder) (all []stepAfterRun) {
	for d.steps > 0 {
		from := len(all)
		if d.expand(); d.queue.someSteps() {
			for d.queue.someSteps() {
				op := d.queue.steps[d.queue.stepAt]
				d.queue.stepAt++
				s := stepAfterRun{misses: op & (opNew - 1) >> opMisses, follows: op / opOther & 1}
				if op >= opNew {
					s.follows, s.off = followsNew, op>>32
				}
				all = append(all, s)
			}
		} else if err := d.token(); err != nil {
			t.Fatalf("decoding failed with %d remaining steps: %v", d.steps, err)
		} else {
			all = append(all, make([]stepAfterRun, d.run)...)
			all = append(all, d.last)
		}
		d.steps -= uint64(len(all) - from)
	}
	return all
}
