package sgt

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
	"pgregory.net/rapid"
)

func faultsOf(t failer, file []byte) (faults []string, v *Verdict) {
	t.Helper()
	v, err := Check(NewReader("t", bytes.NewReader(file), Options{}), func(f Fault) { faults = append(faults, f.What) })
	if err != nil {
		t.Fatalf("%v", err)
	}
	if v.Faults != uint64(len(faults)) {
		t.Fatalf("Check counted %d faults, but reported %d", v.Faults, len(faults))
	}
	return faults, v
}

// TestWholeFilesHaveNoFaults checks that Check finds no faults in complete files, and that the
// functions Check and Look return the same numbers.
func TestWholeFilesHaveNoFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		steps := someSteps(t, p, 8)
		file := write(t, p, steps, someChunks(t))
		faults, v := faultsOf(t, file)
		references := uint64(len(naiveRows(p, steps, trace.AllKinds)))
		if len(faults) > 0 || v.Decoded != references || v.References != references || v.Steps != uint64(len(steps)) {
			t.Fatalf("faults %q in a complete file with %d references, of which %d were decoded", faults, references, v.Decoded)
		}
		s, err := Look(NewReader("t", bytes.NewReader(file), Options{}))
		if err != nil || s.Stopped != nil {
			t.Fatalf("%v, %v", err, s.Stopped)
		}
		if s.Steps != v.Steps || s.References != references || s.Bytes != uint64(len(file)) || !s.Indexed || s.Ending.Lost != 7 {
			t.Fatalf("Look = %+v, which does not match the file", s)
		}
	})
}

// TestEveryWrongByteIsReported checks that the function Check detects a flipped bit in any byte of a
// file.
func TestEveryWrongByteIsReported(t *testing.T) {
	p := blocksOf("ls", "", "l")
	steps := []step{{1, 1, 0, []uint64{8, 16}}, {1, 1, 1, nil}, {2, 2, 2, []uint64{1 << 40}}, {1, 3, 0, []uint64{16, 24}}}
	file := write(t, p, steps, chunkSize{bytes: 1 << 20, steps: 2})
	for at := range file {
		wrong := bytes.Clone(file)
		wrong[at] ^= 0x10
		if v, err := Check(NewReader("t", bytes.NewReader(wrong), Options{}), func(Fault) {}); err == nil && v.Faults == 0 {
			t.Errorf("byte %d of %d is wrong, but no fault is reported", at, len(file))
		}
	}
}

// TestCheckReportsFaults checks that Check reports wrong content even if the checksums are correct.
func TestCheckReportsFaults(t *testing.T) {
	p := blocksOf("ls", "")
	// The function "file" returns a container. It calls the function "change" to modify each
	// chunk's frame before the frame is written.
	file := func(change func(c *openChunk, floor *uint64), tickets ...uint64) []byte {
		var out bytes.Buffer
		w := NewWriter(&out, 64, nil)
		if err := w.Module(AppendModule(nil, p)); err != nil {
			t.Fatal(err)
		}
		for _, ticket := range tickets {
			c := &openChunk{thread: 1}
			c.begin(w.layouts)
			c.step(ticket, 0, []uint64{8, 16}, w.layouts)
			c.step(ticket, 1, nil, w.layouts)
			c.end()
			floor := uint64(0)
			change(c, &floor)
			w.chunk(c, floor)
		}
		if err := w.Close(End{How: "exit"}); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	for _, c := range []struct {
		name   string
		change func(c *openChunk, floor *uint64)
		want   string
	}{
		{"nothing", func(*openChunk, *uint64) {}, ""},
		{"references", func(c *openChunk, _ *uint64) { c.references++ }, "the chunk has 2 references, but the frame header states 3"},
		{"steps", func(c *openChunk, _ *uint64) { c.steps++ }, "the chunk cannot be read completely: the tickets of the chunk do not follow the format"},
		{"last ticket", func(c *openChunk, _ *uint64) { c.lastTicket++ }, "the chunk ends with ticket "},
		{"floor", func(_ *openChunk, floor *uint64) { *floor = 1000 }, "the chunk begins with ticket 8, but earlier chunks state that all later tickets are at least 1000"},
		{"control", func(c *openChunk, _ *uint64) { c.control = append(c.control, 1) }, "the chunk cannot be read completely: the chunk contains bytes or values that none of its steps uses"},
		{"value", func(c *openChunk, _ *uint64) { c.value = nil }, "the chunk cannot be read completely: the steps of the chunk do not follow the format"},
		{"block", func(c *openChunk, _ *uint64) { c.control = appendPrefix(appendPrefix(nil, 2), 200) }, "the chunk cannot be read completely: the chunk has a step for a block that no table contains"},
		{"ticket", func(c *openChunk, _ *uint64) { c.ticket = nil }, "the chunk cannot be read completely: the tickets of the chunk do not follow the format"},
	} {
		faults, _ := faultsOf(t, file(c.change, 5, 8))
		if c.want == "" && len(faults) > 0 || c.want != "" && !strings.Contains(strings.Join(faults, "\n"), c.want) {
			t.Errorf("%s: faults %q, want %q", c.name, faults, c.want)
		}
	}
	faults, _ := faultsOf(t, file(func(*openChunk, *uint64) {}, 8, 5))
	if want := "thread 1 continues with ticket 5 after 8, but tickets must not decrease"; len(faults) != 1 || faults[0] != want {
		t.Errorf("decreasing tickets: faults %q, want %q", faults, want)
	}
}

func someRows(n int) *trace.Batch {
	b := trace.NewBatch(n)
	b.Resize(n)
	b.NeedSite()
	return b
}

// TestCountReferencesOfLargeBlock checks that the references in a block with the maximum number of
// values are counted correctly.
func TestCountReferencesOfLargeBlock(t *testing.T) {
	p := blocksOf(strings.Repeat("l", MaxValues))
	for i := range p.Sites {
		p.Sites[i].Bytes = uint32(1 + i*7%3*7)
	}
	rng := rand.New(rand.NewPCG(1, 4))
	file := written(t, generated{program: p, run: func(step stepper) {
		for range 100 {
			values := make([]uint64, MaxValues)
			for i := range values {
				values[i] = rng.Uint64N(3) << 12 >> rng.Uint64N(12)
			}
			step(0, values...)
		}
	}})
	if faults, v := faultsOf(t, file); len(faults) > 0 || v.References != 100*MaxValues {
		t.Fatalf("%d references, faults %q", v.References, faults)
	}
}

// TestCountsWithoutValues checks that three ways to count the references in a chunk have the same
// result, even if the chunk is damaged. The three ways are: without decoding values, by creating
// rows, and by decoding values.
func TestCountsWithoutValues(t *testing.T) {
	counted, made := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		p := someProgram(t)
		r := NewReader("t", bytes.NewReader(write(t, p, someSteps(t, p, 8), someChunks(t))), Options{})
		k := &checker{r: r, rows: someRows(rapid.IntRange(1, 9).Draw(t, "rows"))}
		for c, err := r.source.next(r); err == nil; c, err = r.source.next(r) {
			r.extend(&r.program)
			k.layouts = appendLayouts(nil, &r.program)
			if err := k.d.unpack(c); err != nil {
				t.Fatal(err)
			}
			if content := k.d.content[:c.contentBytes()]; len(content) > 0 && rapid.Bool().Draw(t, "damaged") {
				content[rapid.IntRange(0, len(content)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "by")
			}
			got, gotErr := k.unpacked(c)
			if _, err := k.steps(c, k.d.count); err == errNeedsValues {
				made++
			} else {
				counted++
			}
			want, wantErr := k.steps(c, k.withValues)
			if got != want || gotErr != wantErr {
				t.Fatalf("%d references, error %v; after decoding the values, %d references, error %v", got, gotErr, want, wantErr)
			}
		}
	})
	if counted == 0 || made == 0 {
		t.Fatalf("%d chunks were counted without values and %d with values, want both", counted, made)
	}
}
