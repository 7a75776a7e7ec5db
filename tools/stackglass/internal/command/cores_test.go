package command

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/analysis/communication"
)

// kernelFolder is the folder of the OpenMP programs and their traces.
const kernelFolder = "../../../../core/simulate/testdata/kernels/"

func init() {
	goldenCommands = append(goldenCommands,
		"simulate "+kernelFolder+"histogram.sgt --cache L1=512,2 --cache L2=4KiB,4,shared=all",
		"simulate "+kernelFolder+"histogram.sgt --cache L1=512,2 --cache L2=4KiB,4,shared=2 --protocol msi --format json",
		"simulate "+kernelFolder+"multiply.sgt --cache L1=512,2 --cores 1,3/2 --format csv",
		"validate "+kernelFolder+"stencil.sgt --cache L1=512,full --cache L2=4KiB,8,shared=all",
		"validate "+kernelFolder+"histogram.sgt --cache L1=512,2 --cache L2=2KiB,4,shared=2 --cores 1/2/3/4 --format json",
		"what-if "+kernelFolder+"histogram.sgt --cache L1=512,2,latency=4 --cache L2=4KiB,8,shared=all,latency=20 --cache memory=latency=100",
		"what-if "+kernelFolder+"histogram.sgt --cache L1=512,2 --cache L2=2KiB,4,shared=2 --domains 1,2/3,4 --by core --format csv",
		"what-if "+kernelFolder+"multiply.sgt --cache L1=512,2 --cache L2=4KiB,8,shared=all --share 1=2KiB --by core",
	)
}

// TestCoherentLevelEqualsSimulation checks that the predicted and the simulated misses of a single
// private level are equal, on every core and for every cache. The test uses stored traces and a
// trace that it records.
func TestCoherentLevelEqualsSimulation(t *testing.T) {
	for _, name := range []string{"stencil", "histogram", "multiply"} {
		traces := []string{kernelFolder + name + ".sgt"}
		if fresh := captureKernel(t, name); fresh != "" {
			traces = append(traces, fresh)
		}
		for _, path := range traces {
			for _, cache := range []string{"64,full", "512,full", "2KiB,full", "512,1", "1KiB,2", "2KiB,8", "4KiB,4"} {
				for _, level := range levelsOf(t, "validate "+path+" --cache L1="+cache+" --format csv") {
					if level["difference"] != "0" || level["method"] != "exact" {
						t.Errorf("%s, cache %s: prediction and simulation differ: %v", path, cache, level)
					}
				}
			}
		}
	}
}

// TestKernelTable checks that the table in core/simulate/testdata/kernels/README.md is up to date.
func TestKernelTable(t *testing.T) {
	const begin = "| kernel | caches |"
	text, err := os.ReadFile(kernelFolder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	about, table, _ := strings.Cut(string(text), begin)
	table = begin + table
	want := begin + " level | model | predicted | simulated | difference |\n| --- | --- | --- | --- | ---: | ---: | ---: |\n"
	for _, name := range []string{"stencil", "histogram", "multiply"} {
		for _, caches := range []string{"1KiB,full; 4KiB,full", "1KiB,2; 4KiB,8", "1KiB,2; 16KiB,8"} {
			want += kernelRows(t, name, caches)
		}
	}
	if *update {
		if err := os.WriteFile(kernelFolder+"README.md", []byte(about+want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("got:\n%s\nwant:\n%s", table, want)
	}
}

// kernelRows returns a kernel's rows in the table, for a hierarchy with two levels.
func kernelRows(t *testing.T, name, caches string) (rows string) {
	first, second, _ := strings.Cut(caches, "; ")
	got := stackglass("validate", kernelFolder+name+".sgt", "--cache", "L1="+first, "--cache", "L2="+second+",shared=all", "--format", "json")
	var answer struct {
		Views []struct {
			Name, View, Method string
			PredictedMisses    float64 `json:"predicted_misses"`
			Misses             float64
			Share              float64 `json:"difference_ratio"`
		}
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer.Views) != 4 {
		t.Fatalf("%v\n%s", err, got)
	}
	for _, v := range answer.Views {
		method := ""
		if v.Method == "sdcm" {
			method = " (by SDCM)"
		}
		rows += fmt.Sprintf("| %s | %s | %s | %s%s | %.0f | %.0f | %+.2f %% |\n", name, caches, v.Name, v.View, method, v.PredictedMisses, v.Misses, 100*v.Share)
	}
	return rows
}

// captureKernel compiles a kernel with instrumentation, runs it, and returns the path of its trace.
// It returns "" if clang-19 or its OpenMP library is not installed.
func captureKernel(t *testing.T, name string) (path string) {
	t.Helper()
	if _, err := exec.LookPath("clang-19"); err != nil {
		t.Log("no program was recorded: clang-19 is not installed")
		return ""
	}
	source, err := filepath.Abs(kernelFolder + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, path := filepath.Join(dir, name), filepath.Join(dir, name+".sgt")
	if exec.Command("clang-19", "-fopenmp", source, "-o", program).Run() != nil {
		t.Log("no program was recorded: clang-19 has no OpenMP (libomp-19-dev)")
		return ""
	}
	if got := stackglass("cc", "--", "clang-19", "-O2", "-fopenmp", source, "-o", program); got.code != exitOK {
		t.Fatal(got)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "STACKGLASS_OUT="+path, "STACKGLASS_QUIET=1")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInvalidCoresRejected checks the errors and warnings for invalid questions about cores, and
// for questions that the trace cannot answer.
func TestInvalidCoresRejected(t *testing.T) {
	inFolder(t, map[string]string{"a.din": "0 1000\n"})
	for line, word := range map[string]string{
		"simulate a.din --cache L1=1KiB,4 --protocol moesi":        "want mesi, msi or none",
		"simulate a.din --cache L1=1KiB,4 --cores 0/0,1":           "each thread on one core",
		"what-if a.din --cache L1=1KiB,4 --by thread":              "want one of level, core",
		"what-if a.din --cache L1=1KiB,4,shared=all --share 0":     "0=4MiB",
		"what-if a.din --cache L1=1KiB,4,shared=all --share 0=512": "several threads",
	} {
		expectExit(t, stackglass(words(line)...), exitUsage, word)
	}
	expectExit(t, stackglass(words("what-if a.din --cache L1=1KiB,4 --by core")...), exitOK, "does not record which thread")
	expectExit(t, stackglass(words("simulate a.din --cache L1=1KiB,4 --cores 0/1")...), exitOK, "does not record which thread")
}

func TestInvalidSharesAndGroupsRejected(t *testing.T) {
	for line, word := range map[string]string{
		"what-if " + kernelFolder + "stencil.sgt --cache L1=512,2 --share 1=256":                  "a cache that several cores share",
		"what-if " + kernelFolder + "stencil.sgt --cache L1=512,2,shared=all --share 9=256":       "a thread of the trace",
		"what-if " + kernelFolder + "stencil.sgt --cache L1=512,2,shared=all --share 1=256,1=128": "at most one share per core",
		"what-if " + kernelFolder + "stencil.sgt --cache L1=512,2,shared=all --share 1=1KiB":      "at most 512",
		"simulate " + kernelFolder + "stencil.sgt --cache L1=1KiB,2,shared=2 --cache L2=4KiB,2":   "shared=CORES, where CORES is a multiple of the 2",
	} {
		expectExit(t, stackglass(words(line)...), exitUsage, word)
	}
	got := stackglass(words("simulate " + kernelFolder + "stencil.sgt --cache L1=512,2,shared=2")...)
	expectExit(t, got, exitOK, "in the order in which their threads first appear in the trace: threads ")
	got = stackglass(words("simulate " + kernelFolder + "stencil.sgt --cache L1=1GiB,1,random --memory " + strconv.Itoa(3<<28))...)
	expectExit(t, got, exitExhausted, "cores")
}

// fiveThreads returns a trace in which the threads do not appear in the order of their numbers. The
// threads read the same lines, but write to private lines.
func fiveThreads() string {
	text, random := "addr,rw,size,tid\n", rand.New(rand.NewPCG(1, 2))
	threads := []int{7, 3, 5, 9, 1}
	for i := range 6000 {
		thread := threads[min(i/100, random.IntN(len(threads)))]
		if random.IntN(3) == 0 {
			text += fmt.Sprintf("%d,w,8,%d\n", 1<<20*thread+64*random.IntN(60), thread)
		} else {
			text += fmt.Sprintf("%d,r,8,%d\n", 1<<30+64*random.IntN(60), thread)
		}
	}
	return text
}

// TestLevelsSharedBySomeCores checks cache levels that are shared by several, but not all, cores.
// Without --domains, every verb with a hierarchy must use the same groups of cores as a simulation.
// For a trace that cannot be read twice, the error must contain advice.
func TestLevelsSharedBySomeCores(t *testing.T) {
	text := fiveThreads()
	inFolder(t, map[string]string{"a.csv": text})
	misses := func(line string) (list []string) {
		for _, level := range levelsOf(t, line+" --format csv") {
			list = append(list, level["misses"])
		}
		return list
	}
	for _, caches := range []string{
		"--cache L1=2KiB,full,shared=4",
		"--cache L1=4KiB,full,shared=2",
		"--cache L1=4KiB,full,shared=3 --cores 3,9/7",
		"--cache L1=1KiB,full --cache L2=8KiB,full,non-inclusive,shared=4",
	} {
		predicted, simulated := misses("what-if a.csv "+caches), misses("simulate a.csv "+caches)
		if strings.Contains(caches, "L2") { // L2 is not compared, because its prediction assumes that L2 sees every access
			predicted, simulated = predicted[:1], simulated[:1]
		}
		if !slices.Equal(predicted, simulated) {
			t.Errorf("%s: %s misses, want the simulated %s", caches, predicted, simulated)
		}
	}
	for _, line := range []string{
		"what-if a.csv --hierarchy i7-6700", "threads a.csv --cache L2=4KiB,8,shared=4", "compare a.csv a.csv --on what-if --cache L1=4KiB,8,shared=4",
		"validate a.csv --cache L1=4KiB,8,shared=4", "sites a.csv --hierarchy i7-6700", "export a.csv --to json --hierarchy i7-6700",
	} {
		if got := stackglass(words(line)...); strings.Contains(got.stderr, "--domains") {
			t.Errorf("%s: %s", line, got)
		}
	}
	expectExit(t, stackglass(words("what-if a.csv --cache L1=4KiB,8,shared=4")...), exitOK, "each L1 is shared by 4 cores; cores are grouped in the order in which their threads first appear in the trace: threads 3,5,7,9, then 1")
	for line, word := range map[string]string{
		"what-if - --cache L1=4KiB,8,shared=4":  "--domains 1,3,5,7/9",
		"validate - --cache L1=4KiB,8,shared=4": "--cores 1/3/5/7/9",
	} {
		expectExit(t, askWith(text, words(line)...), exitUsage, word)
	}
	expectExit(t, askWith(text, words("what-if - --cache L1=4KiB,8,shared=4 --domains 3,5,7,9")...), exitOK, "")
	expectExit(t, stackglass(words("analyze a.csv -o a.sgp")...), exitOK, "")
	expectExit(t, stackglass(words("what-if a.sgp --cache L1=4KiB,8,shared=4")...), exitUsage, "--domains 1,3,5,7/9")
}

// TestAbsentThreads checks that every verb with an option for groups of threads warns about threads
// that are not in the trace.
func TestAbsentThreads(t *testing.T) {
	inFolder(t, map[string]string{
		"a.csv": "addr,rw,size,tid\n0x1000,w,8,0\n0x1000,r,8,1\n0x1000,r,8,2\n", "a.din": "0 1000\n",
	})
	for line, want := range map[string]string{
		"threads a.csv --domains 9":                                   "--domains 9: the trace contains none of these threads, only 0-2",
		"threads a.csv --domains 0-1/2-3":                             "--domains 2,3: the trace contains only some of these threads: 2",
		"analyze a.csv --cores 7/8":                                   "--cores 8: the trace contains none of these threads, only 0-2",
		"what-if a.csv --cache L1=1KiB,4 --domains 5,6":               "--domains 5,6: the trace contains none of these threads, only 0-2",
		"simulate a.csv --cache L1=1KiB,4 --cores 0/1,2/9":            "--cores 9: the trace contains none of these threads, only 0-2",
		"what-if a.din --cache L1=1KiB,4 --domains 0,1 --format json": "--domains 0,1: the trace does not record which thread made a reference",
		"threads a.csv --domains 9 --format json":                     "--domains 9: the trace contains none of these threads, only 0-2",
	} {
		got := stackglass(words(line)...)
		if got.code != exitOK || !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: want %q\n%s", line, want, got)
		}
	}
	if got := stackglass(words("threads a.csv --domains 0-1 --cores 2")...); strings.Contains(got.stderr, "of these threads") {
		t.Error(got)
	}
}

// TestAbsentThreadsReserveCores checks that groups reserve cores even for threads that never
// appear, so that fewer cores remain for other threads. Each absent thread causes a warning.
func TestAbsentThreadsReserveCores(t *testing.T) {
	for threads, folded := range map[int]bool{63: false, 64: true} {
		text := "addr,rw,size,tid\n"
		for thread := range threads {
			text += "0x1000,w,8," + strconv.Itoa(thread) + "\n"
		}
		inFolder(t, map[string]string{"a.csv": text})
		got := stackglass("threads", "a.csv", "--cores", "500-502")
		expectExit(t, got, exitOK, "--cores 500-502: the trace contains none of these threads, only 0-"+strconv.Itoa(threads-1))
		if said := strings.Contains(got.stderr, "at most 64 cores"); said != folded {
			t.Errorf("%d threads: %s", threads, got)
		}
	}
}

// TestCachesOfManyThreads checks traces with more threads than cores, whose last threads are
// merged. A line that a thread wrote must still be looked up in the cache of the thread's own core,
// and a warning must name the merged threads.
func TestCachesOfManyThreads(t *testing.T) {
	const threads = 70 // six threads, including thread 0, share their cores with other threads
	text := "addr,rw,size,tid\n"
	for _, kind := range []string{"w", "r"} {
		for i := range threads {
			thread := i
			if kind == "r" {
				thread = 0
			}
			text += strconv.Itoa(1<<16+64*i) + "," + kind + ",8," + strconv.Itoa(thread) + "\n"
		}
	}
	inFolder(t, map[string]string{"a.csv": text})
	got := stackglass(words("communication a.csv --cache L1=32KiB,full --format json")...)
	var answer struct {
		Caches []struct {
			Transfers uint64
			Near      uint64 `json:"cache_to_cache"`
		}
		Warnings []string
	}
	if err := json.Unmarshal([]byte(got.stdout), &answer); err != nil || len(answer.Caches) != 1 {
		t.Fatalf("%v\n%s", err, got)
	}
	if c := answer.Caches[0]; c.Transfers != threads-2 || c.Near != threads-2 {
		t.Errorf("%d transfers, %d of them from cache to cache, want %d of both: from each thread except thread 0 and the thread on the same core", c.Transfers, c.Near, threads-2)
	}
	said := strings.Join(answer.Warnings, "\n")
	for _, words := range []string{"more than 64 threads; the 7 threads that appear last count as one thread", "70 threads run on 64 cores"} {
		if !strings.Contains(said, words) {
			t.Errorf("warnings %q, want %q among them", said, words)
		}
	}
}

// TestCommunicationBySite checks that no two rows are equal except for their counts, and that the
// rows add up to the flows between threads.
func TestCommunicationBySite(t *testing.T) {
	number := func(text string) (n int) {
		n, _ = strconv.Atoi(text)
		return n
	}
	for _, file := range []string{"demo:false-sharing", "demo:openmp-stencil", "demo:migratory-counter", "demo:ring"} {
		line := "communication " + file
		want := 0
		for _, flow := range levelsOf(t, line+" --by flow --format csv") {
			want += number(flow["events"])
		}
		got, known := 0, map[string]bool{}
		for _, row := range levelsOf(t, line+" --by site --format csv") {
			got += number(row["events"])
			key := fmt.Sprint(row["producer"], row["producer_line"], row["consumer"], row["consumer_line"], row["consumer_kind"], row["object"], " ", row["from"], " ", row["to"])
			if known[key] || row["from"] == row["to"] {
				t.Errorf("%s: repeated row: %v", file, row)
			}
			known[key] = true
		}
		if got != want {
			t.Errorf("%s: %d events by site, want %d, as by flow", file, got, want)
		}
		_, table, _ := strings.Cut(stackglass(words(line)...).stdout, "Values that one thread wrote and another thread used")
		table, _, _ = strings.Cut(table, "\n\n")
		lines := strings.Split(table, "\n")
		for i, text := range lines {
			if slices.Contains(lines[:i], text) {
				t.Errorf("%s: repeated row: %s", file, text)
			}
		}
	}
}

// TestCommunicationIsDetected checks that a profile contains communication if a second thread
// appears soon. Otherwise, the verb "analyze" must print how to include communication.
func TestCommunicationIsDetected(t *testing.T) {
	for rows, missed := range map[int]bool{100: false, communication.Trial: true} {
		text := "addr,rw,size,tid\n" + strings.Repeat("0x1000,w,8,1\n", rows) + "0x1000,r,8,2\n"
		inFolder(t, map[string]string{"a.csv": text})
		got := stackglass("analyze", "a.csv", "-o", "a.sgp")
		if said := strings.Contains(got.stderr, "--analyses sharing,communication"); got.code != exitOK || said != missed {
			t.Errorf("trace with %d references of one thread: analyze prints advice: %v, want %v: %s", rows, said, missed, got)
		}
		if got := stackglass("communication", "a.sgp"); (got.code == exitOK) == missed {
			t.Error(got)
		}
		if got := stackglass("analyze", "a.csv", "-o", "b.sgp", "--analyses", "sharing,communication"); got.code != exitOK || strings.Contains(got.stderr, "communicate") {
			t.Error(got)
		}
		expectExit(t, stackglass("communication", "b.sgp"), exitOK, "")
		// The container's index lists both threads, so the second thread is known from the start.
		for _, workers := range []string{"1", "2"} {
			expectExit(t, stackglass("convert", "a.csv", "-o", "a"+workers+".sgt"), exitOK, "")
			if got := stackglass("analyze", "a"+workers+".sgt", "-o", "c.sgp", "--workers", workers); got.code != exitOK || strings.Contains(got.stderr, "communication") {
				t.Error(got)
			}
			expectExit(t, stackglass("communication", "c.sgp"), exitOK, "")
		}
	}
}

// TestDomainsOfNonconsecutiveCores checks caches that are shared by cores with nonconsecutive
// numbers. Each row must list the cores that share a cache, and state the effective share of this
// cache.
func TestDomainsOfNonconsecutiveCores(t *testing.T) {
	got := stackglass(words("threads " + kernelFolder + "histogram.sgt --cache L2=2KiB,full,shared=2 --domains 1,3/2,4 --by domain --format csv")...)
	want := "level,cores,core,threads,accesses,misses,alone_misses,share_bytes\n" +
		"L2,\"0,2\",0,1,3849,201,201,832\nL2,\"1,3\",1,2,1704,72,72,1088\nL2,\"0,2\",2,3,1704,35,72,\nL2,\"1,3\",3,4,1704,34,71,\n"
	if got.stdout != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
