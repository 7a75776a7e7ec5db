package pass_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/analysis/sample"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
	"github.com/stackglass/stackglass/tools/beam/pass"
	"github.com/stackglass/stackglass/tools/beam/pool"
	"github.com/stackglass/stackglass/tools/capture"
)

func TestMain(m *testing.M) {
	pool.Child() // does not return in a worker process
	beam.Init()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	stop, err := pool.Loopback(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// container writes random steps of a single-threaded program with allocations.
func container(t *testing.T, seed uint64, steps int) []byte {
	t.Helper()
	return containerOf(t, seed, steps, 1)
}

// containerOf is container with the given number of threads. Each thread makes about a hundred steps
// at a time.
func containerOf(t *testing.T, seed uint64, steps int, threads uint32) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	p := program()
	var out bytes.Buffer
	w := sgt.NewWriter(&out, 64, nil)
	if err := w.Module(sgt.AppendModule(nil, p)); err != nil {
		t.Fatal(err)
	}
	w.Objects(0, []trace.Addr{p.Objects[0].Addr})
	var held []trace.Addr
	thread := uint32(1)
	for i := range steps {
		if rng.IntN(100) == 0 {
			thread = 1 + rng.Uint32N(threads)
		}
		block, values := uint32(0), []uint64{0x2000 + 8*rng.Uint64N(4000), 0x1000 + 8*rng.Uint64N(16)}
		switch {
		case rng.IntN(20) == 0:
			held = append(held, 0x10000+64*rng.Uint64N(500))
			block, values = 1, []uint64{held[len(held)-1], 64 + rng.Uint64N(300)}
		case rng.IntN(25) == 0 && len(held) > 0:
			i := rng.IntN(len(held))
			block, values = 2, []uint64{held[i]}
			held = append(held[:i], held[i+1:]...)
		case rng.IntN(2) == 0 && len(held) > 0:
			values[0] = held[rng.IntN(len(held))] + 8*rng.Uint64N(8)
		}
		if err := w.Step(thread, uint64(i), block, values); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(500) == 0 {
			w.Flush()
		}
	}
	if err := w.Close(sgt.End{How: "exit"}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// program loads from anywhere and stores to a table, allocates, and releases.
func program() *trace.Program {
	p := &trace.Program{
		Modules:   []trace.Module{{Name: "a.c", Base: 0x400000, End: 0x500000}},
		Functions: []trace.Function{{Name: "main", Blocks: 3}},
		Objects:   []trace.Object{{Name: "table", Addr: 0x1000, Bytes: 128}},
		Threads:   []trace.Thread{{Number: 1}},
		Blocks:    []trace.Block{{Label: "b", Sites: 2}, {Label: "a", FirstSite: 2, Sites: 1}, {Label: "f", FirstSite: 3, Sites: 1}},
		Sites:     []trace.Site{{Kind: trace.Load, Bytes: 8}, {Kind: trace.Store, Bytes: 8}, {Kind: trace.Alloc, Block: 1}, {Kind: trace.Free, Block: 2}},
	}
	for i := range p.Sites {
		p.Sites[i].PC = 0x400000 + 4*trace.Addr(i)
		p.Sites[i].Place = trace.Place{File: "a.c", Line: uint32(i + 1)}
	}
	return p
}

// alone returns the profile of the command: one run from the beginning to the end.
func alone(t *testing.T, spec analysis.Spec, file []byte) []byte {
	t.Helper()
	opened, err := open.Open("t", bytes.NewReader(file), open.Options{Packings: packings})
	if err != nil {
		t.Fatal(err)
	}
	if o, err := sgt.ReadOutline(bytes.NewReader(file), int64(len(file))); err == nil {
		opened.Expect(o)
	}
	return runAlone(t, spec, opened)
}

func runAlone(t *testing.T, spec analysis.Spec, reader trace.Reader) []byte {
	t.Helper()
	r, err := analysis.NewRunner(spec, reader)
	for err == nil {
		err = r.Step()
	}
	if err == io.EOF {
		err = nil
	}
	return r.Finish(analysis.StateAfter(err, r.Progress().References)).Encode()
}

// folder creates a folder with these files.
func folder(t *testing.T, content map[string][]byte) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range content {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(names[len(names)-1], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir, names
}

func options(t *testing.T) pass.Options {
	return pass.Options{Analyses: "default", References: 20_000, MostLines: 1 << 20, FanIn: 3, Lanes: 1, MostInline: pass.DefaultMostInline, Output: t.TempDir()}
}

// run runs the pipeline on Prism, in this process.
func run(t *testing.T, names []string, o pass.Options) error {
	t.Helper()
	o, remove := o.Temporarily()
	err := execute(names, o)
	spilled, globbed := filepath.Glob(filepath.Join(o.Spill, "*.segment"))
	if err == nil && (o.MostInline < pass.DefaultMostInline) != (len(spilled) > 0) {
		t.Errorf("the files %v contain segments of more than %d bytes (%v)", spilled, o.MostInline, globbed)
	}
	if failed := remove(context.Background()); failed != nil {
		t.Error(failed)
	}
	if _, left := os.Stat(o.Spill); left == nil {
		t.Errorf("%s is left over: %v", o.Spill, left)
	}
	return err
}

// execute converts and analyses traces, as the program does.
func execute(names []string, o pass.Options) error {
	ctx := context.Background()
	tasks, _, err := pass.Conversions(ctx, names, &o)
	if err != nil {
		return err
	}
	if len(tasks) > 0 {
		p, s := beam.NewPipelineWithRoot()
		pass.BuildConversion(s, tasks, o)
		if _, err := prism.Execute(ctx, p); err != nil {
			return err
		}
	}
	load, err := pass.Check(ctx, names, &o)
	if err != nil {
		return err
	}
	p, s := beam.NewPipelineWithRoot()
	pass.Build(s, names, load, o)
	_, err = prism.Execute(ctx, p)
	return err
}

// same compares each profile with the profile of a single run.
func same(t *testing.T, o pass.Options, content map[string][]byte) {
	t.Helper()
	set, err := analysis.ParseAnalyses(o.Analyses)
	if err != nil {
		t.Fatal(err)
	}
	spec := analysis.Spec{Analyses: set, LineBytes: o.LineBytes}
	if o.Sample != "" {
		chosen, err := sample.Parse(o.Sample)
		if err != nil {
			t.Fatal(err)
		}
		chosen.Seed = o.Seed
		spec.Sample = chosen
	}
	for name, b := range content {
		got, err := os.ReadFile(filepath.Join(o.Output, strings.TrimSuffix(name, ".sgt")+".sgp"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, alone(t, spec, b)) {
			t.Errorf("%s: the profile differs from that of one run", name)
		}
	}
	list, err := filepath.Glob(filepath.Join(o.Output, "*.tmp"))
	if err != nil || len(list) > 0 {
		t.Errorf("%v %v is left over", list, err)
	}
}

// The profile has the same bytes as a single run, whatever options divide the work.
func TestSameBytes(t *testing.T) {
	content := map[string][]byte{"a.sgt": container(t, 1, 90_000), "b.sgt": container(t, 2, 140_000), "short.sgt": container(t, 3, 300), "threads.sgt": containerOf(t, 4, 60_000, 4)}
	_, names := folder(t, content)
	for i, change := range []func(*pass.Options){
		func(*pass.Options) {},
		func(o *pass.Options) { o.References, o.FanIn, o.Lanes = 5000, 2, 3 },
		func(o *pass.Options) { o.MostLines = 200 },
		func(o *pass.Options) { o.PatienceMS, o.Lanes = 1, 2 },
		func(o *pass.Options) { o.Analyses, o.LineBytes = "locality,sets,counters", []uint32{32, 128} },
		func(o *pass.Options) { o.Analyses = "default,blocks" },
		func(o *pass.Options) { o.Analyses, o.Lanes = "default,loops,footprint,data", 2 },
		func(o *pass.Options) { o.Analyses, o.Workspace = "sites", t.TempDir() },
		func(o *pass.Options) { o.MostInline, o.FanIn = 100, 2 },
		func(o *pass.Options) { o.MostInline, o.Workspace = 0, t.TempDir() },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			o := options(t)
			change(&o)
			if err := run(t, names, o); err != nil {
				t.Fatal(err)
			}
			same(t, o, content)
			if told, err := os.ReadFile(filepath.Join(o.Output, "report.txt")); err != nil || o.Analyses != "default,blocks" && strings.Count(string(told), "  yes  ") != 3 {
				t.Errorf("%v: not exactly the three long traces were divided:\n%s", err, told)
			}
		})
	}
}

// A sample has the same profile as in the command. It is not divided.
func TestSample(t *testing.T) {
	content := map[string][]byte{"a.sgt": container(t, 1, 50_000), "threads.sgt": containerOf(t, 4, 50_000, 4), "a.lackey": lackeyThreads(0)}
	_, names := folder(t, content)
	for _, text := range []string{"space=0.1", "lines=128", "time=100", "onoff=1000/5000"} {
		o := options(t)
		o.Sample, o.Seed, o.Lanes = text, 7, 2
		if err := run(t, names, o); err != nil {
			t.Fatal(text, err)
		}
		same(t, o, content)
		if told, err := os.ReadFile(filepath.Join(o.Output, "report.txt")); err != nil || !strings.Contains(string(told), "estimated from a sample") {
			t.Errorf("%s: %v: the report does not mention the sample:\n%s", text, err, told)
		}
	}
}

// Short demos with threads are divided, too, if the stretches are short.
func TestDividedDemos(t *testing.T) {
	_, names := folder(t, demos(t))
	for _, workers := range []int{1, 2, 4, 8} {
		p, err := pool.Start(context.Background(), pool.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		restore := p.Use()
		o := options(t)
		o.References, o.FanIn, o.Lanes = 8000, 4, workers
		err = run(t, names, o)
		restore()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		same(t, o, demos(t))
		told, err := os.ReadFile(filepath.Join(o.Output, "report.txt"))
		if err != nil || strings.Count(string(told), "  yes  ") < 4 {
			t.Errorf("%v: only a few demos were divided:\n%s", err, told)
		}
	}
}

// demos returns the files of the demos.
func demos(t *testing.T) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	list, err := filepath.Glob("../../../site/demos/*.sgt")
	if err != nil || len(list) < 5 {
		t.Fatal("no demos", err)
	}
	for _, name := range list {
		if content[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

// dataFolder returns the folder with the traces that developers share.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("STACKGLASS_DATA")
	if dir == "" {
		dir = "../../../../shared/data"
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("STACKGLASS_DATA names no folder with traces/")
	}
	return dir
}

// imported converts a trace to a container.
func imported(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := open.Open(name, f, open.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := sgt.NewImporter(&out, nil)
	b := trace.NewBatch(0)
	for err = r.Next(b); err == nil; err = r.Next(b) {
		if err := w.Write(b, r.Header()); err != nil {
			t.Fatal(err)
		}
	}
	if err != io.EOF {
		t.Fatal(err)
	}
	if err := w.Close(sgt.End{}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// All demos and shared traces have the same profile as a single run.
func TestRealTraces(t *testing.T) {
	content := demos(t)
	for _, name := range []string{"gemm", "jacobi2d", "sort"} {
		content[name+".sgt"] = imported(t, filepath.Join(dataFolder(t), "traces", name+".lackey.lz4"))
	}
	_, names := folder(t, content)
	for _, workers := range []int{1, 2, 4, 8} {
		p, err := pool.Start(context.Background(), pool.Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		restore := p.Use()
		o := options(t)
		o.References, o.FanIn, o.Lanes = 700_000, 4, workers
		err = run(t, names, o)
		restore()
		p.Close()
		if err != nil {
			t.Fatal(err)
		}
		same(t, o, content)
		told, err := os.ReadFile(filepath.Join(o.Output, "report.txt"))
		if err != nil || !bytes.Contains(told, []byte("8,469,460")) || !bytes.Contains(told, []byte("median")) {
			t.Errorf("the report: %v\n%s", err, told)
		}
	}
}

// Three workers that are killed while they analyse segments do not change the result.
func TestKilled(t *testing.T) {
	content := map[string][]byte{"a.sgt": container(t, 4, 800_000), "b.sgt": containerOf(t, 5, 300_000, 3)}
	for _, workers := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			o := options(t)
			o.References = 50_000
			sameAfterKills(t, content, workers, o)
		})
	}
}

// All demos and two programs with four threads, each with more than 2·10⁷ references, have the same
// profiles as a single run, although three workers are killed while they analyse segments.
func TestCaptured(t *testing.T) {
	if os.Getenv("STACKGLASS_SOAK") == "" {
		t.Skip("analyses 2·10⁸ references; set STACKGLASS_SOAK=1 to run it")
	}
	content := demos(t)
	content["stencil.sgt"], content["ring.sgt"] = captured(t, "stencil"), captured(t, "ring")
	for _, workers := range []int{1, 2, 4, 8} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			o := options(t)
			o.References = 2_000_000
			sameAfterKills(t, content, workers, o)
			told, err := os.ReadFile(filepath.Join(o.Output, "report.txt"))
			for _, name := range []string{"/stencil.sgt", "/ring.sgt"} {
				_, row, _ := strings.Cut(string(told), name)
				if fields := strings.Fields(row); err != nil || len(fields) < 4 || fields[2] != "yes" || len(fields[3]) < len("20,000,000") {
					t.Errorf("%v: %s was not divided, or is too short:\n%s", err, name, told)
				}
			}
		})
	}
}

// A state of many lines passes through the workspace: a trace that reads many lines twice, in order, is
// analysed in stretches whose joined states contain all lines. The soak's number of lines is
// STACKGLASS_LINES, or 10⁷. Only the analysis locality is selected, because its state is the smallest.
// The soak sets the garbage collector as the documentation recommends (GOGC, GOMEMLIMIT), and checks the
// memory of the process.
func TestManyLines(t *testing.T) {
	lines, soak := uint64(300_000), os.Getenv("STACKGLASS_SOAK") != ""
	if soak {
		lines = 10_000_000
		if text := os.Getenv("STACKGLASS_LINES"); text != "" {
			n, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				t.Fatalf("STACKGLASS_LINES=%s: want a number of lines", text)
			}
			lines = n
		}
	}
	if soak {
		defer debug.SetGCPercent(debug.SetGCPercent(20))
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(64<<20 + 80*int64(lines)))
	}
	name := filepath.Join(t.TempDir(), "many.sgt")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := sgt.NewWriter(file, 64, nil)
	if err := w.Module(sgt.AppendModule(nil, program())); err != nil {
		t.Fatal(err)
	}
	for i := range lines { // a step of this program makes two references
		at := 2 * i % lines
		if err := w.Step(1, i, 0, []uint64{1<<32 + 64*at, 1<<32 + 64*(at+1)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(sgt.End{How: "exit"}), file.Close()); err != nil {
		t.Fatal(err)
	}
	o := options(t)
	o.Analyses, o.Workspace, o.MostInline, o.FanIn = "locality", t.TempDir(), 0, 2
	// There are three stretches, of which one node joins two. Only one join runs at a time, as on a worker.
	// The stretches are analysed at the same time, in segments that are short enough to need less memory
	// than a join.
	o.MostLines, o.References = lines/12, 2*lines/3
	if err := run(t, []string{name}, o); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(o.Output, "many.sgp"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	c := profile.NewCurve(p.Locality[0].Histogram(trace.AllKinds))
	if got := [3]uint64{c.Accesses, c.Misses(lines), c.Misses(lines / 2)}; got != [3]uint64{2 * lines, lines, 2 * lines} {
		t.Errorf("accesses, misses with %d lines, and with half of them: %d, want %d, %d and %d", lines, got, 2*lines, lines, 2*lines)
	}
	if told, err := os.ReadFile(filepath.Join(o.Output, "report.txt")); err != nil || !strings.Contains(string(told), "  yes  ") {
		t.Errorf("%v: the trace was not divided:\n%s", err, told)
	}
	t.Logf("%d lines: the trace has %d bytes, and the workspace has %d", lines, sizeOf(t, name), sizeOf(t, o.Workspace))
	status, err := os.ReadFile("/proc/self/status")
	if _, text, found := strings.Cut(string(status), "VmHWM:"); err == nil && found && soak {
		most, err := strconv.ParseUint(strings.Fields(text)[0], 10, 64)
		t.Logf("largest memory of the process: %d kB, %.1f bytes per line", most, float64(most<<10)/float64(lines))
		if limit := 128<<20 + 90*lines; err != nil || most<<10 > limit {
			t.Errorf("the process needs %d kB of memory (%v), want at most %d", most, err, limit>>10)
		}
	}
}

// sizeOf returns the number of bytes of the files in a folder, or of a file.
func sizeOf(t *testing.T, name string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(name, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// captured compiles a program of testdata so that it is traced, runs it, and returns its trace.
func captured(t *testing.T, name string) []byte {
	t.Helper()
	compiler, err := exec.LookPath("clang-19")
	if err != nil {
		t.Skip("skipped: clang-19 is not installed")
	}
	program := filepath.Join(t.TempDir(), name)
	source, err := filepath.Abs(filepath.Join("testdata", name+".c"))
	if err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	status, err := capture.Compile(capture.IO{Stdin: strings.NewReader(""), Stdout: &told, Stderr: &told}, capture.Options{},
		compiler, []string{"-O1", "-fopenmp", source, "-o", program})
	if status != 0 && strings.Contains(told.String(), "omp") {
		t.Skipf("skipped: OpenMP is not installed: %s", told.Bytes())
	}
	if status != 0 || err != nil {
		t.Fatalf("status %d, %v\n%s", status, err, told.Bytes())
	}
	run := exec.Command(program)
	run.Dir = filepath.Dir(program)
	if told, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, told)
	}
	b, err := os.ReadFile(program + ".sgt")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameAfterKills analyses traces with worker processes, kills three of them while they analyse segments,
// and compares the profiles with the profiles of single runs.
func sameAfterKills(t *testing.T, content map[string][]byte, workers int, o pass.Options) {
	t.Helper()
	_, names := folder(t, content)
	p, err := pool.Start(context.Background(), pool.Options{Workers: workers, Bundles: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer p.Use()()
	killThree(p)
	defer pool.Watch(func(pool.Work) {})
	o.Lanes, o.Workers = pass.Parts*workers, workers
	err = run(t, names, o)
	if err != nil {
		t.Fatal(err)
	}
	if n := hits(p); n != 3 {
		t.Errorf("%d workers were killed while they analysed a segment, want 3: %q", n, p.Losses())
	}
	same(t, o, content)
}

// segmentWork is a part of the names of the work of analysing segments.
const segmentWork = ", stretch "

// hits returns how many workers were killed while they analysed a segment of a bundle, which another
// worker repeated.
func hits(p *pool.Pool) (n int) {
	for _, loss := range p.Losses() {
		if strings.Contains(loss, "signal: killed, while it worked on") && strings.Contains(loss, segmentWork) {
			n++
		}
	}
	return n
}

// killThree kills workers that begin to analyse a segment, one after the other, until it has hit three.
func killThree(p *pool.Pool) {
	var mu sync.Mutex
	kills, last := 0, time.Time{}
	pool.Watch(func(w pool.Work) {
		mu.Lock()
		defer mu.Unlock()
		lost := len(p.Losses())
		// A worker that had already ended the segment is not counted, so another one is killed later.
		if w.Ended || !strings.Contains(w.Name, segmentWork) || hits(p) == 3 || lost < kills && time.Since(last) < time.Second {
			return
		}
		kills, last = lost+1, time.Now()
		p.Kill(func(_ int, doing []string) bool { return slices.Contains(doing, w.Name) })
	})
}

// Stored segments are used unless they are damaged or belong to another trace.
func TestGoesOn(t *testing.T) {
	content := map[string][]byte{"a.sgt": container(t, 1, 140_000)}
	_, names := folder(t, content)
	o := options(t)
	o.Workspace = t.TempDir()
	if err := run(t, names, o); err != nil {
		t.Fatal(err)
	}
	list, err := filepath.Glob(filepath.Join(o.Workspace, "*", "*.segments"))
	if err != nil || len(list) < 3 {
		t.Fatal(list, err)
	}
	// One file is lost, one is truncated, and one belongs to another trace.
	if err := os.Remove(list[0]); err != nil {
		t.Fatal(err)
	}
	cut, err := os.ReadFile(list[1])
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range [][]byte{cut[:len(cut)/2], cut} {
		if err := os.WriteFile(list[1+i], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := os.Stat(list[len(list)-1])
	if err != nil {
		t.Fatal(err)
	}
	o.Output = t.TempDir()
	if err := run(t, names, o); err != nil {
		t.Fatal(err)
	}
	same(t, o, content)
	if after, err := os.Stat(list[len(list)-1]); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("a segment that was there was made again (%v)", err)
	}
	if again, err := os.ReadFile(list[1]); err != nil || !bytes.Equal(again, cut) {
		t.Errorf("a damaged segment was not made again (%v)", err)
	}
}

// The analysed part of a stretch that was cut is used by the next job, whatever its patience, unless
// the trace was changed.
func TestGoesOnBehindCuts(t *testing.T) {
	content := map[string][]byte{"a.sgt": container(t, 1, 140_000)}
	_, names := folder(t, content)
	o := options(t)
	o.Workspace, o.References, o.PatienceMS, o.Lanes = t.TempDir(), 90_000, 1, 2
	for _, patience := range []int64{1, 1, 0, 60_000} {
		o.PatienceMS, o.Output = patience, t.TempDir()
		if err := run(t, names, o); err != nil {
			t.Fatal(err)
		}
		same(t, o, content)
	}
	content["a.sgt"] = container(t, 2, 140_000)
	if err := os.WriteFile(names[0], content["a.sgt"], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(names[0], time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	o.Output = t.TempDir()
	if err := run(t, names, o); err != nil {
		t.Fatal(err)
	}
	same(t, o, content)
	if list, err := filepath.Glob(filepath.Join(o.Workspace, "*")); err != nil || len(list) != 2 {
		t.Errorf("%v, %v, want a folder for each of two traces", list, err)
	}
}

func TestBadInput(t *testing.T) {
	good := container(t, 1, 140_000)
	middle := len(good) / 2
	damaged := bytes.Clone(good)
	for i := range 200 {
		damaged[middle+i] ^= 0x55
	}
	other := append(bytes.Clone(good[:middle]), container(t, 2, 140_000)[middle:]...)
	_, names := folder(t, map[string][]byte{"damaged.sgt": damaged, "mixed.sgt": other, "text.sgt": []byte("no trace\n"), "empty.sgt": nil, "good.sgt": good})
	of := map[string]string{}
	for _, n := range names {
		of[filepath.Base(n)] = n
	}
	readOnly := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(readOnly, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		traces []string
		change func(*pass.Options)
		want   string
	}{
		{"missing", []string{of["good.sgt"], "/none/x.sgt"}, nil, "/none/x.sgt"},
		{"format", []string{of["text.sgt"]}, nil, "unknown format"},
		{"empty", []string{of["empty.sgt"]}, nil, "is empty"},
		{"damaged", []string{of["damaged.sgt"]}, nil, "damaged.sgt"},
		{"mixed", []string{of["mixed.sgt"]}, nil, "mixed.sgt"},
		{"workspace", []string{of["good.sgt"]}, func(o *pass.Options) { o.Workspace = readOnly + "/x" }, "cannot be written to"},
		{"output", []string{of["good.sgt"]}, func(o *pass.Options) { o.Output = readOnly }, "cannot be written to"},
		{"sample", []string{of["good.sgt"]}, func(o *pass.Options) { o.Sample = "space=2" }, "above 0, at most 1"},
		{"message", []string{of["good.sgt"]}, func(o *pass.Options) { o.MostInline = 2_000_000_001 }, "message-bytes"},
		{"lines", []string{of["good.sgt"]}, func(o *pass.Options) { o.LineBytes = []uint32{3} }, "line"},
		{"names", []string{of["good.sgt"], "/elsewhere/good.sgt"}, nil, "both"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t)
			if c.change != nil {
				c.change(&o)
			}
			err := run(t, c.traces, o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if list, _ := filepath.Glob(filepath.Join(o.Output, "*")); len(list) > 0 {
				t.Errorf("%v was written", list)
			}
		})
	}
}

// The report lists ranks that differ from the others.
func TestReport(t *testing.T) {
	var list []pass.Result
	for i := range 20 {
		r := pass.Result{Trace: fmt.Sprintf("rank-%d.sgt", i), Facts: []pass.Fact{{Name: "references", Value: 1000 + float64(i%3)}, {Name: "miss ratio in 32 KiB", Value: 0.1, Ratio: true}}}
		if i == 11 {
			r.Facts[1].Value = 0.4
		}
		list = append(list, r)
	}
	d := pass.Report(list)
	if len(d.Tables) != 3 || len(d.Tables[2].Rows) != 1 {
		t.Fatalf("%d tables, outliers %v", len(d.Tables), d.Tables[len(d.Tables)-1].Rows)
	}
	var out bytes.Buffer
	if err := d.Write(&out, "markdown"); err != nil {
		t.Fatal(err)
	}
	if at := strings.Index(out.String(), "rank-2.sgt"); at < 0 || at > strings.Index(out.String(), "rank-10.sgt") {
		t.Errorf("ranks are not in order:\n%s", out.String())
	}
}
