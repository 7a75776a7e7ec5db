package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// These tests run the programs in testdata/play, which call the runtime's functions in the same way
// as instrumented code. Therefore, the exact content of their traces is known.

// playProgram returns the blocks that the programs in testdata/play execute.
func playProgram() *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{Name: "play"}}}
	add := func(sites ...trace.Site) {
		b := trace.Block{Function: trace.NoFunction, Label: strconv.Itoa(len(p.Blocks)), FirstSite: uint32(len(p.Sites)), Sites: uint32(len(sites))}
		for _, s := range sites {
			s.Block = uint32(len(p.Blocks))
			p.Sites = append(p.Sites, s)
		}
		p.Blocks = append(p.Blocks, b)
	}
	load := func(bytes uint32) trace.Site { return trace.Site{Kind: trace.Load, Bytes: bytes} }
	add(load(8))
	add()
	add(load(8), load(8), trace.Site{Kind: trace.Store, Bytes: 8})
	add(load(4), trace.Site{Kind: trace.RangeWrite}, load(1), trace.Site{Kind: trace.Modify, Bytes: 2})
	add(trace.Site{Kind: trace.Alloc}, trace.Site{Kind: trace.Free}, trace.Site{Kind: trace.LoopBegin}, load(16))
	add(trace.Site{Kind: trace.Store, Flags: trace.MaskedSite})
	for _, n := range []int{4, 5, 7, 8, 48} {
		var many []trace.Site
		for range n {
			many = append(many, load(8))
		}
		add(many...)
	}
	return p
}

// blocksHeader returns a C header that defines the blocks and their tables in the same way as
// instrumented code does.
func blocksHeader(p *trace.Program) string {
	var blocks, scales strings.Builder
	for i := range p.Blocks {
		b, values, references := &p.Blocks[i], 0, 0
		for j := b.FirstSite; j < b.FirstSite+b.Sites; j++ {
			s := &p.Sites[j]
			if s.Kind.IsReference() {
				references++
			}
			scales.WriteString(scaleOf(s) + "," + strings.Repeat("0,", s.Values()-1))
			values += s.Values()
		}
		blocks.WriteString("{" + strconv.Itoa(values) + "," + strconv.Itoa(references) + ",0,0},")
	}
	return "enum { play_range = 3, play_masked = 5 }; // the blocks that have ranges\n" +
		"static struct __sg_block play_block[] = {" + blocks.String() + "};\n" +
		"static const uint8_t play_scale[] = {" + scales.String() + "};\n" +
		"static const uint8_t play_tables[] = {" + byteList(sgt.AppendModule(nil, p)) + "};\n"
}

// scaleOf returns the scale of a site's first value, as defined in core/trace/sgt/FORMAT.md.
func scaleOf(s *trace.Site) string {
	switch {
	case s.Kind > trace.Fetch || s.Bytes < 2:
		return "0"
	case s.Bytes < 4:
		return "1"
	case s.Bytes < 8:
		return "2"
	}
	return "3"
}

// installedClangs returns the paths of all installed versions of clang.
var installedClangs = sync.OnceValue(func() (found []string) {
	for _, name := range []string{"clang-14", "clang-19"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	return found
})

// newestClang returns the newest installed clang. If no clang is installed, the test is skipped.
func newestClang(t *testing.T) string {
	t.Helper()
	all := installedClangs()
	if len(all) == 0 {
		t.Skip("skipped: neither clang-14 nor clang-19 is installed")
	}
	return all[len(all)-1]
}

// If soak is true, tests run longer, and with every compiler.
var soak = os.Getenv("STACKGLASS_SOAK") != ""

// shouldTest reports whether a test should run with a given compiler. All tests run with
// the newest compiler. Older compilers generate different IR, so some of the tests also run with
// older compilers.
func shouldTest(clang string, sample bool) bool {
	all := installedClangs()
	return soak || sample || clang == all[len(all)-1]
}

// playPrograms contains the path of each compiled program, by its name in testdata/play.
var playPrograms struct {
	sync.Mutex
	folder string
	made   map[string]string
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "stackglass-play-")
	must(err)
	playPrograms.folder, playPrograms.made = folder, map[string]string{}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// buildPlay compiles a program in testdata/play unless this was done before, and returns
// the path of the executable.
func buildPlay(t *testing.T, name string) string {
	t.Helper()
	clang := newestClang(t)
	playPrograms.Lock()
	defer playPrograms.Unlock()
	if playPrograms.made[name] == "" {
		playPrograms.made[name] = compilePlay(t, clang, name)
	}
	return playPrograms.made[name]
}

func compilePlay(t *testing.T, clang, name string) string {
	t.Helper()
	dir := playPrograms.folder
	r, err := BuildRuntime(clang)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "blocks.h"), []byte(blocksHeader(playProgram())), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, strings.TrimSuffix(name, ".c"))
	args := []string{"-O1", "-g0", "-Wall", "-Wextra", "-Werror", "-Wno-unused-const-variable", "-Wno-unused-function", "-I", dir, "-I", r.Folder, filepath.Join("testdata", "play", name), "-o", out}
	args = append(args, "-pthread")
	args = append(args, r.programLink(false)...)
	if said, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, said)
	}
	return out
}

// An outcome is the result of running a program.
type outcome struct {
	stdout, stderr []byte
	state          *os.ProcessState
	dir            string
}

// hangTimeout is the time after which a test assumes that a program hangs. Every test program ends
// much sooner.
const hangTimeout = 5 * time.Minute

// runProgram runs a program in a new folder.
func runProgram(t *testing.T, env []string, program string, args ...string) *outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o := &outcome{dir: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), hangTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.dir, &stdout, &stderr
	cmd.WaitDelay = hangTimeout // a child process may keep the output open after the program has ended
	cmd.Env = append(os.Environ(), "STACKGLASS_OUT=out.sgt")
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Run(); ctx.Err() != nil {
		t.Fatalf("%s %s does not terminate", filepath.Base(program), strings.Join(args, " "))
	} else if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	o.stdout, o.stderr, o.state = stdout.Bytes(), stderr.Bytes(), cmd.ProcessState
	return o
}

// traceContent is the content of a trace.
type traceContent struct {
	*trace.Batch
	header trace.Header
	ending sgt.Ending
	err    error
}

// readTraceFile returns all records of a trace.
func readTraceFile(t *testing.T, file string, kinds trace.Kinds) *traceContent {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	r := sgt.NewReader(filepath.Base(file), bytes.NewReader(content), sgt.Options{Strict: true})
	r.Select(kinds)
	all, err := trace.ReadAll(r)
	return &traceContent{Batch: all, header: r.Header(), ending: r.Ending(), err: err}
}

// readTrace returns all records of a run's trace. The test fails if the trace is incomplete.
func (o *outcome) readTrace(t *testing.T, kinds trace.Kinds) *traceContent {
	t.Helper()
	got := readTraceFile(t, filepath.Join(o.dir, "out.sgt"), kinds)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got
}

const everything = trace.AllKinds | trace.EventKinds

// TestStepsRoundTrip checks that the Go decoder returns exactly the steps that the C encoder wrote.
func TestStepsRoundTrip(t *testing.T) {
	program := buildPlay(t, "random.c")
	for _, c := range []struct{ seed, steps string }{{"1", "10"}, {"2", "3000"}, {"3", "300000"}} {
		o := runProgram(t, nil, program, c.seed, c.steps)
		got := o.readTrace(t, everything)
		comparePlayed(t, got, o.stdout)
		if got.ending.How != "exit" || got.ending.Lost != 0 {
			t.Errorf("seed %s: the trace ends with %+v, want an exit and no lost steps", c.seed, got.ending)
		}
	}
}

// comparePlayed checks that the records of the trace match the steps that the program printed.
func comparePlayed(t *testing.T, got *traceContent, said []byte) {
	t.Helper()
	p, row := playProgram(), 0
	next := func(kind trace.Kind, addr, arg uint64) {
		for row < got.Len() && (got.Kind[row] == trace.ThreadStart || got.Kind[row] == trace.ThreadEnd) {
			row++
		}
		if row >= got.Len() {
			t.Fatalf("the trace ends before record %d", row)
		}
		if got.Kind[row] != kind || kind != trace.BlockEntry && got.Addr[row] != addr || !kind.IsReference() && arg != 0 && got.Arg[row] != arg {
			t.Fatalf("record %d is %v %#x, want %v %#x", row, got.Kind[row], got.Addr[row], kind, addr)
		}
		row++
	}
	word := func() uint64 {
		v := binary.LittleEndian.Uint64(said)
		said = said[8:]
		return v
	}
	for len(said) > 0 {
		b := &p.Blocks[word()]
		next(trace.BlockEntry, 0, 0)
		for i := b.FirstSite; i < b.FirstSite+b.Sites; i++ {
			s, v := &p.Sites[i], [2]uint64{}
			for k := range s.Values() {
				v[k] = word()
			}
			next(s.Kind, v[0], v[1])
		}
	}
}

// TestMaskedLanes checks that a masked access to consecutive addresses is recorded as one reference
// for each group of adjacent lanes. A masked gather must be recorded as one reference for each
// lane.
func TestMaskedLanes(t *testing.T) {
	got := runProgram(t, nil, buildPlay(t, "masked.c")).readTrace(t, trace.AllKinds)
	want := []struct {
		addr  uint64
		bytes uint32
	}{
		{0x1000, 32}, {0x2000, 4}, {0x2000 + 8, 8}, {0x2000 + 28, 4}, {0x3000, 64}, {0x4000 + 63, 1}, // one reference for each group of adjacent lanes
		{0x50, 8}, {0x70, 8}, {0x80, 8}, // one reference for each lane
		{7, 8}, // the reference in the block after the masked accesses
	}
	if got.Len() != len(want) {
		t.Fatalf("%d references, want %d", got.Len(), len(want))
	}
	for i, w := range want {
		if got.Addr[i] != w.addr || got.Bytes[i] != w.bytes {
			t.Errorf("reference %d has %d bytes at %#x, want %d at %#x", i, got.Bytes[i], got.Addr[i], w.bytes, w.addr)
		}
	}
}

// TestSlicedOrder checks that the steps of each thread are in order, and that every thread starts
// after the thread that created it.
func TestSlicedOrder(t *testing.T) {
	o := runProgram(t, []string{"STACKGLASS_ORDER=sliced"}, buildPlay(t, "counting.c"))
	got := o.readTrace(t, everything)
	next := map[uint32]uint64{}
	for i, kind := range got.Kind {
		if kind != trace.Load {
			continue
		}
		thread := got.Thread[i]
		if want := next[thread]; got.Addr[i]&(1<<32-1) != want {
			t.Fatalf("thread %d loads %d, want %d", thread, got.Addr[i]&(1<<32-1), want)
		}
		next[thread]++
	}
	for thread, loads := range next {
		if thread != 1 && loads != 200000 {
			t.Errorf("thread %d made %d loads, want 200000", thread, loads)
		}
	}
	if len(next) != 4 || next[1] != 2 || got.Addr[first(got, trace.Load)] != 0 || got.Thread[last(got, trace.Load)] != 1 {
		t.Errorf("loads by thread: %v, want loads by 4 threads, and the first and the last load by the first thread", next)
	}
	for _, f := range got.header.Capture {
		if f.Name == "order" && f.Value != "sliced" {
			t.Errorf("the order in the trace's header is %s, want sliced", f.Value)
		}
	}
}

func first(got *traceContent, kind trace.Kind) int { return slices.Index(got.Kind, kind) }

func last(got *traceContent, kind trace.Kind) int {
	at := -1
	for i, k := range got.Kind {
		if k == kind {
			at = i
		}
	}
	return at
}

// TestTraceContainsOnlyFirstProcess checks that a program's second process does not write to the
// trace of its first process.
func TestTraceContainsOnlyFirstProcess(t *testing.T) {
	o := runProgram(t, nil, buildPlay(t, "counting.c"), "again")
	files, err := filepath.Glob(filepath.Join(o.dir, "out.sgt*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the files %v were written, want two files", files)
	}
	for _, file := range files {
		if got := readTraceFile(t, file, trace.AllKinds); got.err != nil || got.Len() != 3*200000+2 {
			t.Errorf("%s: %d references, %v, want 600,002 references", file, got.Len(), got.err)
		}
	}
}

// TestExactOrderWithLocks checks that, if the exact order is recorded, the references in the trace
// have the order that the program enforces with locks.
func TestExactOrderWithLocks(t *testing.T) {
	o := runProgram(t, nil, buildPlay(t, "token.c"))
	got, want := o.readTrace(t, everything), uint64(0)
	started := map[uint64]int{}
	for i, addr := range got.Addr {
		switch {
		case got.Kind[i] == trace.ThreadStart:
			started[addr]++
		case got.Kind[i] == trace.Load && addr < 1<<40:
			if addr != want {
				t.Fatalf("record %d has token %d, want %d", i, addr, want)
			}
			want++
		}
	}
	if want != 8000 {
		t.Errorf("the token was seen %d times, want 8000", want)
	}
	if len(got.header.Program.Threads) != 5 || started[1] != 5 {
		t.Errorf("threads %+v, started by %v; want 5 threads, all started by the first thread", got.header.Program.Threads, started)
	}
}

// part is the naive reference for STACKGLASS_AFTER and STACKGLASS_FOR: it returns the rows of the
// steps before which the thread made at least "after" references, and fewer than after + count.
func part(whole *traceContent, after, count uint64) *trace.Batch {
	before, kept := map[uint32]uint64{}, map[uint32]bool{}
	rows := trace.NewBatch(0)
	rows.Resize(0)
	rows.NeedLike(whole.Batch)
	for i, kind := range whole.Kind {
		thread := whole.Thread[i]
		if !kind.IsReference() && (kind == trace.BlockEntry || kind == trace.ThreadStart || kind == trace.ThreadEnd) {
			n := before[thread]
			kept[thread] = n >= after && (count == 0 || n < after+count)
		}
		if kept[thread] {
			rows.AppendRows(whole.Batch, i, i+1)
		}
		if kind.IsReference() {
			before[thread]++
		}
	}
	return rows
}

// TestPart checks that a part of a run is recorded exactly: the part equals the same rows of the
// whole trace.
func TestPart(t *testing.T) {
	for _, c := range []struct {
		program string
		args    []string
		parts   [][2]uint64
	}{
		{"random.c", []string{"7", "200000"}, [][2]uint64{{1, 0}, {0, 1}, {0, 5}, {1000, 1}, {12345, 54321}, {300000, 0}, {0, 1 << 40}, {1 << 40, 7}, {1<<64 - 1, 1<<64 - 1}}},
		{"counting.c", nil, [][2]uint64{{1, 0}, {150000, 0}, {5, 20000}, {199999, 7}, {0, 3}}},
	} {
		program := buildPlay(t, c.program)
		whole := runProgram(t, nil, program, c.args...).readTrace(t, everything)
		for _, p := range c.parts {
			env := []string{"STACKGLASS_AFTER=" + strconv.FormatUint(p[0], 10), "STACKGLASS_FOR=" + strconv.FormatUint(p[1], 10)}
			got, want := runProgram(t, env, program, c.args...).readTrace(t, everything), part(whole, p[0], p[1])
			if got.ending.Lost != 0 || got.ending.How != "exit" || got.header.Extent != (trace.Extent{After: p[0], For: p[1]}) {
				t.Errorf("%s %v: the trace ends with %+v and describes the extent %+v", c.program, env, got.ending, got.header.Extent)
			}
			for _, thread := range []uint32{1, 2, 3, 4} {
				sameRows(t, c.program+" "+strings.Join(env, " "), rowsOf(got.Batch, thread), rowsOf(want, thread))
			}
		}
	}
}

// TestStepsAfterPart checks that steps of a thread that are written after the recorded part, and after
// the runtime has emptied their words, do not appear in the next thread, which uses the same buffer.
func TestStepsAfterPart(t *testing.T) {
	got := runProgram(t, []string{"STACKGLASS_FOR=20000"}, buildPlay(t, "interrupted.c")).readTrace(t, trace.AllKinds)
	want := map[uint32][]uint64{1: {0}}
	for i := range uint64(20000) {
		want[2] = append(want[2], i%10000)
	}
	want[3] = slices.Concat(want[2][:4000], want[2][:10000])
	loads, interrupted := map[uint32][]uint64{}, 0
	for i, addr := range got.Addr {
		if thread := got.Thread[i]; thread == 3 && addr == 1<<41 {
			interrupted++
		} else {
			loads[thread] = append(loads[thread], addr)
		}
	}
	for thread := range want {
		if !slices.Equal(loads[thread], want[thread]) {
			t.Errorf("thread %d has %d loads, want %d, or has other loads", thread, len(loads[thread]), len(want[thread]))
		}
	}
	if len(loads) != len(want) || interrupted != 1 || got.ending.Lost != 0 {
		t.Errorf("the trace has %d threads and %d interrupted loads, and ends with %+v; want 3 threads, 1 interrupted load and no lost steps", len(loads), interrupted, got.ending)
	}
}

// rowsOf returns the rows of a thread as texts. In the program counting.c, the numbers of threads
// depend on the order in which they start, and so does the upper half of their addresses.
func rowsOf(b *trace.Batch, thread uint32) (rows []string) {
	for i, kind := range b.Kind {
		if trace.At(b.Thread, i) == thread && kind != trace.ThreadStart {
			rows = append(rows, kind.String()+" "+strconv.FormatUint(b.Addr[i]&(1<<32-1), 16)+" "+strconv.Itoa(int(b.Bytes[i]))+" "+strconv.FormatUint(trace.At(b.Arg, i), 16))
		}
	}
	return rows
}

func sameRows(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("%s: row %d is %s, want %s", what, i, got[i], want[i])
		}
	}
}
