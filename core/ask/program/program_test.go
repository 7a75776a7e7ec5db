package program_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/ask/program"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
)

// module is a program that counts to 100 in a loop.
const module = `define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 100
  br i1 %more, label %loop, label %exit
exit:
  ret i32 0
}
`

func question(t *testing.T, words string) ask.Question {
	t.Helper()
	q, err := ask.Parse(strings.Fields(words))
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return q
}

// If a profile lacks the data that a verb needs, the error contains the reason that Missing
// returns.
func TestMissingData(t *testing.T) {
	p := new(profile.Profile)
	for words, want := range map[string]string{
		"blocks":                      "a.sgp: the profile contains no blocks; analyze",
		"pipeline":                    "a.sgp: the profile contains no blocks; analyze",
		"loops":                       "a.sgp: no references were analysed",
		"multicore machine=L1=1KiB,2": "a.sgp: the division of work can only be predicted from the trace",
	} {
		q := question(t, words)
		_, err := (&ask.Run{Name: "a.sgp", Profile: p}).Answer(q)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("answer to %s: error %v, want an error with %q", words, err, want)
		}
		if q.Verb.Missing(p) == "" || !strings.Contains(err.Error(), q.Verb.Missing(p)) {
			t.Errorf("%s: %v, but Missing returns %q", words, err, q.Verb.Missing(p))
		}
	}
}

// Questions about a module can be answered without a profile. Arguments that name files are read by
// the function [ask.Run.File].
func TestModuleWithoutProfile(t *testing.T) {
	r := &ask.Run{Name: "a.ll", Module: []byte(module), File: func(string) ([]byte, error) { return nil, errors.New("no such file") }}
	d, err := r.Answer(question(t, "blocks by=block"))
	if err != nil {
		t.Fatal(err)
	}
	if n := executions(d, "loop"); n != 10 {
		t.Errorf("the loop runs %v times, want the assumed 10", n)
	}
	if _, err = r.Answer(question(t, "blocks probabilities=none.txt")); err == nil || err.Error() != "--probabilities none.txt: no such file" {
		t.Error(err)
	}
	r.File = nil
	if _, err = r.Answer(question(t, "pipeline processor=mine.txt")); err == nil || !strings.Contains(err.Error(), "mine.txt") {
		t.Error(err)
	}
}

func executions(d *report.Document, block string) float64 {
	for _, t := range d.Tables {
		for _, row := range t.Rows {
			if row[t.Index("block")].Plain() == block {
				n, _ := row[t.Index("executions")].Number()
				return n
			}
		}
	}
	return -1
}

// The verb multicore passes the question's words to [ask.Run.Predict], and adds the reply's tables
// to the document.
func TestMulticoreQuestion(t *testing.T) {
	var asked answers.MulticoreQuestion
	r := &ask.Run{Name: "a.sgt", Predict: func(words answers.MulticoreQuestion) (*answers.Reply, error) {
		asked = words
		rates := report.Table{Key: "rates", Columns: []report.Column{{Key: "cores"}, {Key: "empty"}}}
		rates.Add(report.Count(3), report.None())
		facts := report.Table{Key: answers.CoresFacts, Columns: []report.Column{{Key: "key"}, {Key: "value"}}}
		facts.Add(report.TextOf("trace_format"), report.TextOf("sgt"))
		return &answers.Reply{Tables: []report.Table{rates, facts}, Notes: []string{"A note."}}, nil
	}}
	d, err := r.Answer(question(t, "multicore cores=3,4 seed=7 machine=L1=1KiB,2"))
	if err != nil {
		t.Fatal(err)
	}
	if len(asked.Cores) != 2 || asked.Cores[1] != 4 || asked.Seed != 7 || len(asked.Machine) != 1 {
		t.Errorf("asked %+v", asked)
	}
	if len(d.Tables) != 1 || len(d.Tables[0].Columns) != 1 || len(d.Warnings) != 1 || d.Warnings[0] != "a note" {
		t.Errorf("answered %+v", d)
	}
	if _, err := ask.Parse([]string{"multicore", "by=speedup", "machine=L1=1KiB,2"}); err == nil {
		t.Error("Answer accepted --by speedup without a processor")
	}
}

// TestSimulationMemory checks that the memory limit of a simulation includes the baseline and the
// TLBs.
func TestSimulationMemory(t *testing.T) {
	const caches, tlb = "simulate machine=L1=64KiB,8 machine=L2=1MiB,full", " machine=DTLB=64,4,tlb"
	bytes := func(h hierarchy.Hierarchy) uint64 {
		n, err := simulate.MemoryBytes(h)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	one := bytes(question(t, caches).Machine)
	translated := question(t, caches+tlb).Machine
	of := bytes(translated.Translation())
	for words, need := range map[string]uint64{
		caches:                          one,
		caches + " baseline=true":       2 * one,
		caches + tlb:                    one + of,
		caches + " baseline=true" + tlb: 2*one + of,
	} {
		for limit, fits := range map[uint64]bool{need: true, need - 1: false, 0: true} {
			_, err := program.NewSimulation(&ask.Run{Replay: &ask.Replay{MemoryBytes: limit}}, question(t, words))
			if (err == nil) != fits || !fits && !errors.As(err, new(*simulate.MemoryError)) {
				t.Errorf("%s within %d bytes: error %v, but %d bytes are needed", words, limit, err, need)
			}
		}
	}
}
