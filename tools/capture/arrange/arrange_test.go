package arrange

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/internal/symbols"
	"pgregory.net/rapid"
)

func noSymbols(string) (*symbols.File, error) { return nil, errors.New("there are none") }

// traceText returns the content of a trace as text that does not depend on block numbers.
func traceText(t interface{ Fatalf(string, ...any) }, container []byte) (all []string, end error) {
	r := sgt.NewReader("t", bytes.NewReader(container), sgt.Options{})
	r.Select(trace.AllKinds | trace.EventKinds)
	b := trace.NewBatch(0)
	for {
		err := r.Next(b)
		if err != nil {
			return all, err
		}
		p := r.Header().Program
		for i, kind := range b.Kind {
			row := strconv.Itoa(int(b.Thread[i])) + " " + kind.String() + " " + strconv.FormatUint(b.Addr[i], 16)
			if kind == trace.BlockEntry {
				first, _ := parseLabel(p.Blocks[b.Site[i]].Label)
				if first == 0 {
					first, _ = strconv.ParseUint(p.Blocks[b.Site[i]].Label, 0, 64)
				}
				row += " at " + strconv.FormatUint(first, 16)
			} else {
				s := p.Sites[b.Site[i]]
				if s.Kind != kind {
					t.Fatalf("the record has kind %v, but its site has kind %v", kind, s.Kind)
				}
				row += " of " + strconv.Itoa(int(s.Bytes)) + " at " + strconv.FormatUint(s.PC, 16)
			}
			all = append(all, row)
		}
	}
}

// A recorder makes recordings in the same way as the plugin: when a block is executed for the first
// time, it writes a separate table for the block.
type recorder struct {
	file   bytes.Buffer
	w      *sgt.Writer
	kinds  []trace.Kind // for each block, the kind of its site, or BlockEntry if the block has no site
	ticket uint64
}

func newRecorder() *recorder {
	r := &recorder{}
	r.w = sgt.NewWriter(&r.file, 64, []trace.Fact{{Name: "order", Value: "exact"}})
	r.module(trace.Module{}, trace.Block{Flags: trace.Synthetic, Function: trace.NoFunction})
	r.kinds = append(r.kinds, 0)
	r.site(trace.ThreadStart, 0, 0)
	return r
}

func (r *recorder) module(m trace.Module, b trace.Block, sites ...trace.Site) {
	b.Sites = uint32(len(sites))
	p := &trace.Program{Modules: []trace.Module{m}, Sites: sites}
	if m.Name == "" {
		p.Blocks = []trace.Block{b}
	}
	if err := r.w.Module(sgt.AppendModule(nil, p)); err != nil {
		panic(err)
	}
}

func (r *recorder) site(kind trace.Kind, bytes uint32, pc trace.Addr) {
	r.module(trace.Module{}, trace.Block{Flags: trace.Synthetic, Function: trace.NoFunction}, trace.Site{Kind: kind, Bytes: bytes, PC: pc})
	r.kinds = append(r.kinds, kind)
}

func (r *recorder) block(first, last trace.Addr) {
	hex := func(a trace.Addr) string { return "0x" + strconv.FormatUint(a, 16) }
	r.module(trace.Module{}, trace.Block{Label: hex(first) + "-" + hex(last), Function: trace.NoFunction})
	r.kinds = append(r.kinds, trace.BlockEntry)
}

func (r *recorder) step(thread uint32, block int, value uint64) {
	r.ticket++
	var values []uint64
	if r.kinds[block] != trace.BlockEntry {
		values = []uint64{value}
	}
	if err := r.w.Step(thread, r.ticket, uint32(block), values); err != nil {
		panic(err)
	}
}

func (r *recorder) finish() []byte {
	if err := r.w.Close(sgt.End{How: "exit"}); err != nil {
		panic(err)
	}
	return r.file.Bytes()
}

func finish(t interface{ Fatalf(string, ...any) }, recorded []byte, run Run) ([]byte, Summary) {
	var out bytes.Buffer
	s, err := Finish(&out, bytes.NewReader(recorded), int64(len(recorded)), run, noSymbols)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return out.Bytes(), s
}

// drawRecording returns a recording of a random execution of random code in two files.
func drawRecording(t *rapid.T) []byte {
	r := newRecorder()
	r.module(trace.Module{Name: "/lib/b", Base: 0x8000, End: 0x9000}, trace.Block{})
	r.module(trace.Module{Name: "/bin/a", Base: 0x4000, End: 0x5000}, trace.Block{})
	for range rapid.IntRange(0, 400).Draw(t, "happenings") {
		pc := rapid.OneOf(rapid.Uint64Range(0x4000, 0x4010), rapid.Uint64Range(0x8000, 0x8010), rapid.Uint64Range(1, 4)).Draw(t, "pc")
		switch rapid.IntRange(0, 30).Draw(t, "what") {
		case 0, 1:
			r.site(rapid.SampledFrom([]trace.Kind{trace.Load, trace.Store}).Draw(t, "kind"), 1<<rapid.IntRange(0, 4).Draw(t, "size"), pc)
		case 2:
			r.block(pc, pc+7)
		case 3:
			r.w.Flush()
		case 4:
			// Repeat the same pattern so that the encoder can predict steps.
			block := rapid.IntRange(1, len(r.kinds)-1).Draw(t, "block")
			for i := range rapid.IntRange(1, 100).Draw(t, "times") {
				r.step(1, block, uint64(8*i))
			}
		default:
			r.step(rapid.Uint32Range(1, 3).Draw(t, "thread"), rapid.IntRange(1, len(r.kinds)-1).Draw(t, "block"), rapid.Uint64Max(1<<40).Draw(t, "value"))
		}
	}
	return r.finish()
}

// TestRenumberedBlocksKeepRecords checks that the records of a trace do not change if its blocks
// are renumbered.
func TestRenumberedBlocksKeepRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recorded := drawRecording(t)
		want, err := traceText(t, recorded)
		if err != io.EOF {
			t.Fatalf("the recording: %v", err)
		}
		finished, s := finish(t, recorded, Run{Program: "/bin/a"})
		got, err := traceText(t, finished)
		if err != io.EOF || !slices.Equal(got, want) {
			t.Fatalf("%v; got\n%q, want\n%q", err, got, want)
		}
		references := uint64(0)
		r := sgt.NewReader("t", bytes.NewReader(finished), sgt.Options{})
		for b := trace.NewBatch(0); r.Next(b) == nil; {
			references += uint64(b.Len())
		}
		if s.References != references {
			t.Fatalf("the summary has %d references, the trace has %d", s.References, references)
		}
	})
}

// TestBlockOrder checks that blocks are sorted by file and address, with the program's file first.
func TestBlockOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		finished, _ := finish(t, drawRecording(t), Run{Program: "/bin/a"})
		r := sgt.NewReader("t", bytes.NewReader(finished), sgt.Options{})
		if _, err := trace.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		p := r.Header().Program
		if p.Modules[0].Name != "/bin/a" || p.Modules[0].Base != 0x4000 || p.Modules[1].Name != "/lib/b" {
			t.Fatalf("modules %+v", p.Modules)
		}
		last, at := -1, trace.Addr(0)
		for _, b := range p.Blocks[2:] {
			first := trace.Addr(0)
			if b.Sites > 0 {
				first = p.Sites[b.FirstSite].PC
			} else {
				first, _ = strconv.ParseUint(b.Label, 0, 64)
			}
			file := slices.IndexFunc(p.Modules, func(m trace.Module) bool { return first >= m.Base && first < m.End })
			if file < 0 {
				file = len(p.Modules)
			}
			if file < last || file == last && first < at {
				t.Fatalf("the block at %x of file %d follows the block at %x of file %d", first, file, at, last)
			}
			last, at = file, first
		}
	})
}

// TestTruncatedRecording checks recordings that are cut off at any position. The result must
// contain all records up to the last complete chunk, and the ending that the caller passes.
func TestTruncatedRecording(t *testing.T) {
	r := newRecorder()
	r.site(trace.Load, 8, 0x10)
	for i := range 60 {
		r.step(uint32(1+i%2), 2, uint64(i*i))
		if i%20 == 19 {
			r.w.Flush()
		}
	}
	recorded := r.finish()
	whole, _ := traceText(t, recorded)
	had := 0
	for cut := 60; cut <= len(recorded); cut++ {
		finished, s := finish(t, recorded[:cut], Run{Program: "/bin/a", End: sgt.End{How: "signal 9", Status: 137}, Status: 137})
		got, err := traceText(t, finished)
		if err != io.EOF || len(got) < had || !isPrefix(ofThread(got, "1"), ofThread(whole, "1")) || !isPrefix(ofThread(got, "2"), ofThread(whole, "2")) {
			t.Fatalf("recording cut at byte %d of %d: %d records, error %v", cut, len(recorded), len(got), err)
		}
		had = len(got)
		if ended := s.End.How; ended != "signal 9" && ended != "exit" || s.End.Status != 137 {
			t.Fatalf("recording cut at byte %d: unexpected ending %+v", cut, s.End)
		}
	}
	if had != len(whole) {
		t.Errorf("%d records in the complete recording, want %d", had, len(whole))
	}
	if _, err := Finish(io.Discard, bytes.NewReader(nil), 0, Run{}, noSymbols); err == nil {
		t.Error("an empty recording was converted without an error")
	}
}

func ofThread(rows []string, thread string) []string {
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return !strings.HasPrefix(row, thread+" ") })
}

func isPrefix(part, whole []string) bool {
	return len(part) <= len(whole) && slices.Equal(part, whole[:len(part)])
}

func TestParseLabel(t *testing.T) {
	for label, want := range map[string][2]uint64{
		"0x10-0x1f": {16, 31}, "0x10": {0, 0}, "entry": {0, 0}, "": {0, 0}, "0x1-0xfffffffffffffffff": {0, 0},
	} {
		if first, last := parseLabel(label); first != want[0] || last != want[1] {
			t.Errorf("%q: %x, %x", label, first, last)
		}
	}
}

func FuzzFinish(f *testing.F) {
	r := newRecorder()
	r.site(trace.Load, 8, 0x10)
	for i := range 9 {
		r.step(1, 2, uint64(i*i))
	}
	f.Add(r.finish())
	f.Fuzz(func(t *testing.T, recorded []byte) {
		_, err := Finish(io.Discard, bytes.NewReader(recorded), int64(len(recorded)), Run{}, noSymbols)
		if err != nil && err.Error() == "" {
			t.Fatal("an error with an empty message")
		}
	})
}
