package pass_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/open"
	opengzip "github.com/stackglass/stackglass/core/open/gzip"
	openzip "github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/trace/drmemtrace"
	"github.com/stackglass/stackglass/tools/beam/pass"
)

var packings = []open.Packing{opengzip.Packing, openzip.Packing}

// text writes random references with a function that formats one reference.
func text(head string, references int, line func(rng *rand.Rand, i int, addr uint64) string) []byte {
	rng := rand.New(rand.NewPCG(11, 12))
	var b bytes.Buffer
	b.WriteString(head)
	for i := range references {
		b.WriteString(line(rng, i, 0x2000+8*rng.Uint64N(4000)))
	}
	return b.Bytes()
}

// lackeyLine returns an instruction and the references that it makes. Some instructions make none,
// and some make many.
func lackeyLine(rng *rand.Rand, i int, addr uint64) string {
	if rng.IntN(3) == 0 {
		return fmt.Sprintf("I  %08x,%d\n", 0x400000+4*rng.Uint64N(200), 1+rng.IntN(8))
	}
	return fmt.Sprintf(" %c %08x,%d\n", "LSM"[rng.IntN(3)], addr, 1<<rng.IntN(4))
}

// drmemtraceFile returns the records of one thread: loads, stores and instructions, with a timestamp
// every 500 references.
func drmemtraceFile(thread uint64, references int) []byte {
	rng := rand.New(rand.NewPCG(thread, 1))
	var b []byte
	record := func(kind, size uint16, value uint64) {
		b = binary.LittleEndian.AppendUint16(b, kind)
		b = binary.LittleEndian.AppendUint16(b, size)
		b = binary.LittleEndian.AppendUint64(b, value)
	}
	record(25, 0, 4)
	record(22, 4, thread)
	for i := range references {
		if i%500 == 0 {
			record(28, 2, uint64(1000*i)+thread)
		}
		if i%3 == 0 {
			record(10, 4, 0x400000+4*rng.Uint64N(100))
		} else {
			record(uint16(rng.IntN(2)), 8, 0x2000+8*rng.Uint64N(4000))
		}
	}
	record(23, 4, thread)
	record(26, 0, 0)
	return b
}

func gzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(content); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const references = 240_000

// lackeyThreads returns a trace of three threads. The threads begin after a number of references.
func lackeyThreads(from int) []byte {
	return text("==1== Lackey\n", references, func(rng *rand.Rand, i int, addr uint64) (line string) {
		if i == from || i > from && rng.IntN(50) == 0 {
			line = fmt.Sprintf("--1--   SCHED[%d]:  acquired lock (VG_(scheduler):timeslice)\n", 1+rng.IntN(3))
			if rng.IntN(4) > 0 { // no part begins at the other SCHED lines
				line += "I  00400000,4\n"
			}
		}
		return line + lackeyLine(rng, i, addr)
	})
}

// All formats are analysed with the same result as the original file, and divided if the rows allow
// it. Files without compression whose format allows it are converted in parts.
func TestFormats(t *testing.T) {
	lackey := text("==1== Lackey\n", references, lackeyLine)
	threads := lackeyThreads(0)
	csv := text("addr;rw;size;tid;pc\n", references, func(rng *rand.Rand, i int, addr uint64) string {
		return fmt.Sprintf("0x%x;%c;8;%d;0x%x\n", addr, "rw"[rng.IntN(2)], 1+i/700%3, 0x400000+4*rng.Uint64N(100))
	})
	din := func(rng *rand.Rand, i int, addr uint64) string { return fmt.Sprintf("%d %x\n", rng.IntN(3), addr) }
	for _, c := range []struct {
		name    string
		content []byte
		input   string // start of the description in the report
		divided bool
	}{
		{"a.lackey", lackey, "lackey, converted in 5", true},
		{"data.lackey", text("", references, func(rng *rand.Rand, i int, addr uint64) string { return fmt.Sprintf(" L %08x,8\n", addr) }), "lackey, converted in 4", true},
		{"threads.lackey", threads, "lackey, converted in", true},
		{"late.lackey", lackeyThreads(references / 2), "lackey, original file (threads", false},
		{"bad.lackey", append(bytes.Clone(lackey), " L nowhere,8\n"...), "lackey, original file (a record cannot be read)", false},
		{"a.lackey.gz", gzipped(t, lackey), "lackey, converted", true},
		{"cut.lackey.gz", gzipped(t, lackey)[:200_000], "lackey, original file (a record", false},
		{"a.din", text("", references, din), "din, converted in", true},
		{"short.din", text("", 40, din), "din, converted", false},
		{"a.csv", csv, "csv, converted in", true},
		{"a.csv.zip", zipped(t, "a.csv", csv), "csv, converted", true},
		{"a.pin", text("#\n", references, func(rng *rand.Rand, i int, addr uint64) string {
			return fmt.Sprintf("0x%x: %c 0x%x\n", 0x400000+4*rng.Uint64N(100), "RW"[rng.IntN(2)], addr)
		}), "pinatrace, converted in", true},
		{"a.execlog", text("", references, func(rng *rand.Rand, i int, addr uint64) string {
			return fmt.Sprintf("%d, 0x%x, 0xc0315741, \"movq (%%rsp), %%rdi\", load, 0x%x, RAM\n", i/300%2, 0x400000+4*rng.Uint64N(100), addr)
		}), "execlog, converted in", true},
		{"a.champsim", text("", references, func(rng *rand.Rand, i int, addr uint64) string {
			var record [64]byte
			binary.LittleEndian.PutUint64(record[:], 0x400000+4*rng.Uint64N(100))
			binary.LittleEndian.PutUint64(record[32:], addr)
			return string(record[:])
		}), "champsim, converted in", true},
		{"a.sgt.gz", gzipped(t, container(t, 1, 20_000)), "sgt, original file (the format describes code)", false},
		{"a.drmemtrace", drmemtraceFile(7, references), "drmemtrace, converted", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			content := map[string][]byte{c.name: c.content}
			_, names := folder(t, content)
			o := options(t)
			o.PartBytes, o.Lanes = uint64(len(c.content)/4), 2
			if c.name != "threads.lackey" {
				o.Analyses = "locality,sharing"
			}
			if strings.HasPrefix(c.input, "lackey, converted in 5") {
				o.PartBytes = uint64(len(c.content)/5 + 1)
			}
			if err := run(t, names, o); err != nil {
				t.Fatal(err)
			}
			partial := strings.Contains(c.input, "a record")
			sameNamed(t, o, content, partial)
			told, err := os.ReadFile(filepath.Join(o.Output, "report.txt"))
			if err != nil || !bytes.Contains(told, []byte(c.input)) || bytes.Contains(told, []byte("  yes  ")) != c.divided {
				t.Errorf("%v: want %q, divided: %v:\n%s", err, c.input, c.divided, told)
			}
		})
	}
}

// A file that is smaller than its two identifying ends is cut like a large file, at any size of the
// parts.
func TestSmallFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	lackey := "==1== Lackey\n"
	csv := "addr;rw;size;tid;pc\n"
	for i := range 400 {
		addr := 0x2000 + 8*rng.Uint64N(400)
		if i%40 == 0 {
			lackey += fmt.Sprintf("--1--   SCHED[%d]:  acquired lock (VG_(scheduler):timeslice)\nI  00400000,4\n", 1+i/40%3)
		}
		lackey += lackeyLine(rng, i, addr)
		csv += fmt.Sprintf("0x%x;%c;8;%d;0x%x\n", addr, "rw"[rng.IntN(2)], 1+i/70%3, 0x400000+4*rng.Uint64N(100))
	}
	content := map[string][]byte{"a.lackey": []byte(lackey), "a.csv": []byte(csv)}
	_, names := folder(t, content)
	for _, bytesOfPart := range []uint64{500, 3000} {
		o := options(t)
		o.References, o.PartBytes = 50, bytesOfPart
		if err := run(t, names, o); err != nil {
			t.Fatal(err)
		}
		same(t, o, content)
		told, err := os.ReadFile(filepath.Join(o.Output, "report.txt"))
		for _, want := range []string{"lackey, converted in ", "csv, converted in "} {
			if err != nil || !bytes.Contains(told, []byte(want)) {
				t.Errorf("parts of %d bytes: %v: the report does not contain %q:\n%s", bytesOfPart, err, want, told)
			}
		}
	}
}

// sameNamed is same for partial profiles, too.
func sameNamed(t *testing.T, o pass.Options, content map[string][]byte, partial bool) {
	t.Helper()
	if partial {
		for name := range content {
			whole := filepath.Join(o.Output, name+".sgp")
			if err := os.Rename(filepath.Join(o.Output, name+".partial.sgp"), whole); err != nil {
				t.Fatal(err)
			}
		}
	}
	same(t, o, content)
}

// The files of a DynamoRIO folder are one trace. It is converted once if there is a workspace, and
// converted again after a change.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drmemtrace.app.dir")
	if err := os.MkdirAll(filepath.Join(dir, "trace"), 0o755); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Workspace, o.Analyses = t.TempDir(), "locality,sharing"
	for _, change := range []int{0, 0, 1} {
		var parts []drmemtrace.Part
		for thread := range uint64(3) {
			content := drmemtraceFile(thread+1, 90_000+change)
			name := filepath.Join(dir, "trace", fmt.Sprintf("t.%d.trace", thread))
			if before, err := os.ReadFile(name); err != nil || !bytes.Equal(before, content) {
				if err := os.WriteFile(name, content, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			parts = append(parts, drmemtrace.Part{Name: name, Reader: bytes.NewReader(content)})
		}
		if err := run(t, []string{dir}, o); err != nil {
			t.Fatal(err)
		}
		set, err := analysis.ParseAnalyses(o.Analyses)
		if err != nil {
			t.Fatal(err)
		}
		merged, err := open.Open("t", drmemtrace.Merge(parts), open.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(o.Output, "drmemtrace.app.dir.sgp"))
		if err != nil || !bytes.Equal(got, runAlone(t, analysis.Spec{Analyses: set}, merged)) {
			t.Errorf("the profile differs from that of one run (%v)", err)
		}
		list, err := filepath.Glob(filepath.Join(o.Workspace, "*.parts"))
		if err != nil || len(list) != 1+change {
			t.Errorf("%v, %v: want %d conversions", list, err, 1+change)
		}
	}
	tasks, _, err := pass.Conversions(context.Background(), []string{dir}, func() *pass.Options { with, _ := o.Temporarily(); return &with }())
	if err != nil || len(tasks) > 0 {
		t.Errorf("a converted folder would be converted again: %v, %v", tasks, err)
	}
	empty := t.TempDir()
	if err := run(t, []string{empty}, o); err == nil || !strings.Contains(err.Error(), empty) || !strings.Contains(err.Error(), "DynamoRIO") {
		t.Errorf("an empty folder: %v", err)
	}
}
