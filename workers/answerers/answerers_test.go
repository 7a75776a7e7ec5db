package answerers

import (
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/export"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/hierarchy/sources"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/din"
	"github.com/stackglass/stackglass/workers"
)

// TestSimulatePartialProfile checks that the simulation for a partial profile counts the references of
// the profile, and not the whole trace. The reply must contain the warning about the profile.
func TestSimulatePartialProfile(t *testing.T) {
	rows := strings.Repeat("0 1000\n0 2000\n1 3000\n", 10_000)
	read := func() trace.Reader { return din.NewReader("a", strings.NewReader(rows)) }
	for _, limit := range []uint64{0, 20_000} {
		runner, err := analysis.NewRunner(analysis.Spec{Kinds: 1 << trace.Load, Skip: 10, Limit: limit, Analyses: analysis.Locality}, read())
		for err == nil && runner.Progress().References == 0 {
			err = runner.Step()
		}
		if err != nil {
			t.Fatal(err)
		}
		p := runner.Finish(analysis.StateAfter(analysis.ErrStopped, runner.Progress().References))
		want := p.Totals.AllReferences()
		if want == 0 || want >= 19_000 {
			t.Fatalf("the partial profile has %d references, want a part", want)
		}
		answer, err := All(func(string, string, any) (trace.Reader, io.Closer, error) { return read(), io.NopCloser(nil), nil })[answers.OfVerb](workers.Subject{Name: "a", Profile: p.Encode()})
		if err != nil {
			t.Fatal(err)
		}
		q := answers.Question{Of: answers.OfVerb, Words: []string{"simulate", "machine=L1=1KiB,2"}}
		for range 2 { // the second answer must not depend on the first answer
			var last *answers.Reply
			if err := answer(q, "the trace", func() bool { return true }, func(r *answers.Reply) { last = r }); err != nil {
				t.Fatal(err)
			}
			levels := last.Table("levels")
			if got := levels.Rows[0][levels.Index("accesses")].Plain(); got != fmt.Sprint(want) {
				t.Errorf("limit %d: %s references were simulated, want the %d references of the profile", limit, got, want)
			}
			if text := "covers only a part of the trace: " + p.State.Reason; len(last.Notes) == 0 || !strings.Contains(last.Notes[0], text) {
				t.Errorf("limit %d: warnings = %q, want %q", limit, last.Notes, text)
			}
		}
	}
}

// The function "asked" returns the only reply to a question.
func asked(t *testing.T, s workers.Subject, q answers.Question) (reply *answers.Reply, err error) {
	t.Helper()
	answer, err := All(nil)[q.Of](s)
	if err == nil {
		err = answer(q, nil, func() bool { return true }, func(r *answers.Reply) { reply = r })
	}
	return reply, err
}

func TestDescribe(t *testing.T) {
	text := "clockspeed = 2 * 10**9\ncache_sizes = [32768, 2**20]\ncache_cycles = [4, 12]\n"
	r, err := asked(t, workers.Subject{}, answers.Question{Of: answers.OfDescription, Bytes: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	var h hierarchy.Hierarchy
	for line := range strings.SplitSeq(string(r.Bytes), "\n") {
		if err := h.Add(line); err != nil {
			t.Error(err)
		}
	}
	if len(h.Levels) != 2 || h.Levels[1].LatencyCycles != 12 || h.ClockGHz != 2 || len(r.Notes) != 1 {
		t.Errorf("%s, %q", r.Bytes, r.Notes)
	}
	text = "L1I=32KiB,8,instructions\nL1=32KiB,8,prefetch=stride\nITLB=8,full,tlb,instructions\nDTLB=64,4,tlb\npages=2MiB\n"
	r, err = asked(t, workers.Subject{}, answers.Question{Of: answers.OfDescription, Bytes: []byte(text)})
	if err != nil || string(r.Bytes) != "L1=32KiB,8,prefetch=stride\nDTLB=64,4,tlb\npages=2MiB" || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "do not model ITLB, the instruction cache L1I") {
		t.Errorf("%s, %q, %v", r.Bytes, r.Notes, err)
	}
	_, err = asked(t, workers.Subject{}, answers.Question{Of: answers.OfDescription, Bytes: []byte("{\n\"levels\": 3}")})
	if err == nil || !strings.Contains(err.Error(), "read as JSON: line 2") {
		t.Errorf("error of an invalid hierarchy = %v, want an error with the format and the line", err)
	}
}

// TestMachine checks that the reply about a hierarchy contains the options, the tables about TLBs as
// in the document of what-if, and a comparison of the TLBs only.
func TestMachine(t *testing.T) {
	var rows strings.Builder
	for i := range 40 {
		fmt.Fprintf(&rows, "0 %x\n", i%20*0x100000)
	}
	runner, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Locality | analysis.Pages}, din.NewReader("a", strings.NewReader(rows.String())))
	for err == nil {
		err = runner.Step()
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	p := runner.Finish(profile.State{})
	words := []string{"what-if", "against=L1=2KiB,full", "against=DTLB=16,full,tlb", "against=pages=2MiB", "machine=L1=1KiB,full", "machine=DTLB=16,full,tlb"}
	r, err := asked(t, workers.Subject{Name: "a", Profile: p.Encode()}, answers.Question{Of: answers.OfMachine, Words: words, Bytes: []byte("apple-m1")})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, table := range r.Tables {
		keys = append(keys, table.Key)
	}
	if got := strings.Join(keys, " "); got != "choices against tlbs page_walks sources" {
		t.Errorf("tables = %s, want the options, the comparison, two tables about TLBs and the sources", got)
	}
	if options := r.Table("choices"); len(options.Rows) != 3 || options.Rows[0][0].Plain() != "pages=4KiB" || options.Rows[0][2].Plain() != "true" {
		t.Errorf("options = %v, want three page sizes, with 4 KiB chosen", options.Rows)
	}
	question, err := ask.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	question.Brief = true
	d, err := ask.NewRun("a", p).Answer(question)
	if err != nil {
		t.Fatal(err)
	}
	if want := d.Tables[0]; !reflect.DeepEqual(r.Table("against").Rows, want.Rows) || !reflect.DeepEqual(r.Notes, d.Warnings) {
		t.Errorf("comparison = %v with the warnings %q, want those of the command: %v, %q", r.Table("against").Rows, r.Notes, want.Rows, d.Warnings)
	}
	for _, row := range r.Table("against").Rows {
		if row[1].Plain() == "page_bytes" || row[1].Plain() == "page" {
			t.Error("the page size is compared like a result")
		}
	}
	if want := sources.ForPreset("apple-m1"); len(r.Table("sources").Rows) != len(want) {
		t.Errorf("sources = %v, want %q", r.Table("sources").Rows, want)
	}
	if walks := r.Table("page_walks").Rows; len(walks) != 3 || walks[0][1].Plain() != "40" || walks[1][1].Plain() != "10" {
		t.Errorf("page walks = %v, want 40, 10 and 1", walks)
	}
	r, err = asked(t, workers.Subject{Name: "a", Profile: p.Encode()}, answers.Question{Of: answers.OfMachine, Words: []string{"what-if", "machine=L1=1KiB,full", "machine=DTLB=16,full,tlb", "machine=pages=8KiB"}})
	if err != nil {
		t.Fatal(err)
	}
	if options := r.Table("choices").Rows; len(options) != 4 || options[1][0].Plain() != "pages=8KiB" || options[1][2].Plain() != "true" {
		t.Errorf("options = %v, want four page sizes, with 8 KiB chosen", options)
	}
}

// TestSimulate checks that a simulation reads the attached trace again, with the settings of the
// analysis, that its document equals the counts of a simulator, and that it reports its progress and
// can be stopped.
func TestSimulate(t *testing.T) {
	var rows strings.Builder
	for i := range 600_000 {
		fmt.Fprintf(&rows, "%d %x\n", i%2, i*64%0x5000)
	}
	read := func() trace.Reader { return din.NewReader("a", strings.NewReader(rows.String())) }
	spec := analysis.Spec{Kinds: 1 << trace.Load, Skip: 10, Limit: 250_000, Analyses: analysis.Locality}
	runner, err := analysis.NewRunner(spec, read())
	for err == nil {
		err = runner.Step()
	}
	p := runner.Finish(profile.State{})
	open := func(name, format string, attachment any) (trace.Reader, io.Closer, error) {
		if name != "a" || format != "din" || attachment != "the trace" {
			t.Errorf("opened %s as %s with %v", name, format, attachment)
		}
		return read(), io.NopCloser(nil), nil
	}
	answer, err := All(open)[answers.OfVerb](workers.Subject{Name: "a", Profile: p.Encode()})
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"simulate", "baseline=true", "machine=L1=16KiB,4,random,prefetch=stream", "machine=L2=64KiB,full"}
	ask := func(attachment any, wanted func() bool) (replies []*answers.Reply) {
		q := answers.Question{Of: answers.OfVerb, Words: words, Bytes: []byte("din")}
		if err := answer(q, attachment, wanted, func(r *answers.Reply) { replies = append(replies, r) }); err != nil {
			t.Fatal(err)
		}
		return replies
	}
	looks := 0
	replies := ask("the trace", func() bool {
		if looks++; looks == 2 {
			time.Sleep(partialEvery) // long enough for a partial reply
		}
		return true
	})
	last := replies[len(replies)-1]
	if len(replies) < 2 || replies[0].Table("progress") == nil || !replies[0].More || last.More {
		t.Fatalf("%d replies, want the progress and then the answer: %+v", len(replies), replies)
	}
	if row := replies[0].Table("progress").Rows[0]; row[0].Plain() == "0" || row[1].Plain() != "250000" {
		t.Errorf("progress = %v, want some of 250000 references", row)
	}
	var h hierarchy.Hierarchy
	for _, line := range []string{"L1=16KiB,4,random,prefetch=stream", "L2=64KiB,full"} {
		if err := h.Add(line); err != nil {
			t.Fatal(err)
		}
	}
	s, err := simulate.New(h, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b trace.Batch
	for i := 20; i < 20+2*250_000; i += 2 {
		b.Append(trace.Load, trace.Addr(i*64%0x5000), 4, 0, 0)
	}
	if err := s.Consume(&b); err != nil {
		t.Fatal(err)
	}
	want := s.Finish()
	for i, l := range want.Levels {
		levels := last.Table("levels")
		if got := levels.Rows[i][levels.Index("misses")].Plain(); got != fmt.Sprint(l.Run.Misses()) || got == "0" {
			t.Errorf("%s: %s misses, want %d", l.Cache.Name, got, l.Run.Misses())
		}
	}
	if last.Table("against") == nil || !strings.Contains(string(last.Bytes), `"stackglass.simulate"`) {
		t.Errorf("document = %s, want the baseline", last.Bytes)
	}

	stopped := ask("the trace", func() bool { return false })
	if len(stopped) != 1 || !strings.Contains(stopped[0].Problem, "no longer needed") {
		t.Errorf("replies after a stop = %+v", stopped)
	}
	if replies := ask(nil, func() bool { return true }); len(replies) != 1 || !strings.Contains(replies[0].Problem, "give the trace") {
		t.Errorf("replies without a trace = %+v", replies)
	}
}

func TestExport(t *testing.T) {
	p := (&profile.Profile{}).Encode()
	r, err := asked(t, workers.Subject{Profile: p}, (&export.Request{Form: "json", Title: "a = b"}).Question())
	if err != nil || !strings.Contains(string(r.Bytes), `"a = b"`) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestNames checks that names are demangled in answers, in exported files, and in replies to
// questions that consist only of names.
func TestNames(t *testing.T) {
	const mangled, want = "_ZN3foo3barEi", "foo::bar(int)"
	r, err := asked(t, workers.Subject{}, answers.Question{Of: answers.OfNames, Words: []string{mangled, "main"}})
	if err != nil || !slices.Equal(r.Notes, []string{want, "main"}) {
		t.Errorf("%+v, %v", r, err)
	}
	p := &profile.Profile{Counters: &profile.Counters{Functions: []profile.FunctionCounters{{Name: mangled}}}}
	s := workers.Subject{Name: "a", Profile: p.Encode()}
	for _, q := range []answers.Question{{Of: answers.OfVerb, Words: []string{"counters", "by=function"}}, (&export.Request{Form: "json", Title: "a"}).Question()} {
		r, err := asked(t, s, q)
		if err != nil || !strings.Contains(string(r.Bytes), want) || strings.Contains(string(r.Bytes), mangled) {
			t.Errorf("%s: %s, %v", q.Of, r.Bytes, err)
		}
	}
}

// TestRefusals checks that every answerer refuses questions that it does not understand, and
// subjects without data.
func TestRefusals(t *testing.T) {
	for name := range All(nil) {
		if name == answers.OfDescription || name == answers.OfNames {
			continue
		}
		if _, err := asked(t, workers.Subject{}, answers.Question{Of: name, Words: []string{"nonsense"}}); err == nil {
			t.Errorf("the answerer %s answered an invalid question, want an error", name)
		}
	}
}
