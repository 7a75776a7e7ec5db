package command

import (
	"path/filepath"
	"strings"
	"testing"
)

func init() {
	const table = " --ppt-blocks testdata/ppt/blocks.txt"
	goldenCommands = append(goldenCommands,
		"multicore testdata/multicore/unsaid.sgt --cores 2,8 --hierarchy sasmm --sdcm none --by loops",
		"multicore testdata/multicore/unsaid.sgt --cores 8 --hierarchy sasmm --sdcm none --schedule guided,4 --interleave time",
		"multicore testdata/plain.din --hierarchy sasmm",
		"multicore testdata/plain.din --hierarchy sasmm --division printed",
		"multicore testdata/ppt/trace.txt --division printed --cores 1,4 --hierarchy sasmm"+table+" --ppt-counts testdata/ppt/counts.txt --ppt-bounds testdata/ppt/bounds.txt --sdcm windows,weights=printed",
		"multicore testdata/ppt/named.txt --division region --cores 2,4 --hierarchy sasmm --ppt-shared testdata/ppt/shared.txt --format csv",
		"multicore testdata/ppt/trace.txt --hierarchy sasmm",
		"multicore testdata/ppt/trace.txt --hierarchy sasmm --division printed",
		"multicore testdata/ppt/trace.txt --hierarchy sasmm --division printed"+table+" --ppt-shared testdata/ppt/shared-never.txt",
		"multicore testdata/ppt/trace.txt --hierarchy sasmm --division printed"+table+" --ppt-counts testdata/ppt/counts-wrong.txt",
		"multicore testdata/ppt/trace.txt --hierarchy sasmm --division printed --ppt-blocks testdata/ppt/none.txt",
		"multicore testdata/team.sgt --hierarchy sasmm --ppt-shared testdata/ppt/shared.txt",
	)
	const gemm = " n=16:testdata/multicore/gemm-16.sgt n=24:testdata/multicore/gemm-24.sgt n=32:testdata/multicore/gemm-32.sgt"
	goldenCommands = append(goldenCommands,
		"multicore --at n=48"+gemm+" --check testdata/multicore/gemm-48.sgt --cores 1,2,4,8 --hierarchy sasmm",
		"multicore --at n=64 n=16:testdata/multicore/jacobi-16.sgt n=32:testdata/multicore/jacobi-32.sgt n=48:testdata/multicore/jacobi-48.sgt --check testdata/multicore/jacobi-64.sgt --cores 1,2,4 --hierarchy sasmm",
		"multicore --at n=480"+gemm+" --cores 4 --cache L1=32KiB,8 --cache L2=1MiB,16,shared=2 --format csv",
		"multicore --at n=48"+gemm+" --hierarchy sasmm --processor znver4",
		"multicore --at n=48"+gemm+" --hierarchy sasmm --sdcm all",
		"multicore --at n n=16:testdata/multicore/gemm-16.sgt --hierarchy sasmm",
		"multicore --at n=48 n=16:testdata/multicore/gemm-16.sgt --hierarchy sasmm",
		"multicore --at n=48 n=16:testdata/multicore/gemm-16.sgt n=24:testdata/team.sgt --cores 2 --hierarchy sasmm",
		"multicore --at n=48 n=16:testdata/multicore/gemm-16.sgt n=24:testdata/multiply.sgp --hierarchy sasmm",
		"multicore testdata/multicore/gemm-16.sgt --check testdata/multicore/gemm-48.sgt --hierarchy sasmm",
	)
}

// A profile of predicted threads must answer the same questions as other profiles, with a warning
// that it is predicted.
func TestPredictedProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "team.sgp")
	if got := stackglass("multicore", "testdata/team.sgt", "--cores", "4", "--hierarchy", "sasmm", "--sdcm", "none", "-o", path); got.code != 0 {
		t.Fatal(got)
	}
	simulated := stackglass("multicore", "testdata/team.sgt", "--cores", "4", "--cache", "L1=8KiB,8", "--sdcm", "none", "--format", "csv")
	misses := strings.Split(strings.Split(simulated.stdout, "\n")[1], ",")[6]
	for _, line := range [][]string{
		{"what-if", path, "--cache", "L1=8KiB,8"},
		{"threads", path},
		{"sites", path, "--cache", "L1=8KiB,8"},
	} {
		got := stackglass(line...)
		if want := "the threads of 4 cores were synthesised from a single-threaded run (iterations, round-robin)"; got.code != 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit code %d, stderr %q, want %q in it", line, got.code, got.stderr, want)
		}
	}
	// With one level of private caches, the simulation and the coherent stacks must count the same
	// misses.
	got := stackglass("what-if", path, "--cache", "L1=8KiB,8", "--format", "csv")
	if fields := strings.Split(strings.Split(got.stdout, "\n")[1], ","); fields[6] != misses {
		t.Errorf("%s misses predicted from the coherent stacks, want the simulated %s", fields[6], misses)
	}
	if partial := stackglass("multicore", "testdata/team.sgt", "--cores", "4", "--hierarchy", "sasmm", "-o", "testdata/team.sgt"); partial.code != 2 {
		t.Errorf("got %v, want an error, because the trace would be overwritten", partial)
	}
}
