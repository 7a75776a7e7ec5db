package command

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the output of the command lines to testdata/golden")

// goldenCommands lists command lines whose complete output is stored in testdata/golden. The files
// are named after the command lines. Most command lines run on the embedded demos.
var goldenCommands = []string{
	"diagnose demo:false-sharing --format json",
	"diagnose demo:matmul-naive --cache L1=2KiB,full --cache L2=10KiB,full",
	"diagnose demo:array-list --top 1",
	"diagnose demo:array-list --top 1 --format csv --fail-if findings.saved_cycles>=0",
	"diagnose demo:array-list --top 1 --fail-if findings.saved_share>90%",
	"help",
	"demo",
	"demo --format json",
	"demo array-list",
	"demo matmul-naive --source",
	"measured ../../../../core/measured/testdata/source.script",
	"measured ../../../../core/measured/testdata/software.script",
	"measured demo:matmul-naive --measurement ../../../../core/measured/testdata/likwid.csv --measurement ../../../../core/measured/testdata/mem.script --hierarchy i7-4770K --format json",
	"measured demo:matmul-naive",
	"analyze ../../../../core/measured/testdata/stat.csv",
	"analyze demo:matmul-naive",
	"analyze demo:matmul-naive demo:matmul-blocked --lines 32,64,128",
	"analyze demo:array-list --format json --lines 64,16",
	"analyze demo:array-list --kinds store --format md",
	"histogram demo:matmul-blocked",
	"histogram demo:matmul-blocked --format csv",
	"histogram demo:matmul-blocked --format json --line 128",
	"curve demo:matmul-naive",
	"curve demo:matmul-naive --format csv",
	"curve demo:matmul-naive --format json --limit 1000",
	"curve demo:array-list --format md --skip 34832",
	"curve demo:array-list --steps",
	"sets demo:matmul-naive",
	"sets demo:openmp-stencil --causes --format csv",
	"sets demo:array-list --line 16 --format md",
	"sets demo:matmul-blocked --format csv",
	"sets demo:matmul-blocked --format json --limit 1000",
	"curve demo:matmul-naive --sample space=0.2",
	"curve demo:matmul-naive --sample lines=64 --format csv",
	"curve demo:matmul-naive --sample time=50 --sample-seed 7 --format json",
	"sets demo:matmul-naive --sample space=0.2 --format md",
	"histogram demo:matmul-naive --sample onoff=1000/5000",
	"what-if demo:matmul-naive --sample space=0.2 --cache L1=2KiB,full --cache L2=8KiB,8",
	"analyze demo:matmul-naive --sample space=2",
	"analyze demo:matmul-naive --sample space=0.5 --mergeable",
	"sites demo:matmul-naive --sample space=0.5 --cache L1=2KiB,full",
	"sites demo:matmul-naive --sample lines=64 --cache L1=2KiB,full",
	"sites demo:openmp-stencil --sample space=0.2 --by object",
	"threads demo:openmp-stencil --sample space=0.2 --cache L1=2KiB,full --cache L2=1MiB,16,shared=all",
	"threads demo:openmp-stencil --sample space=0.2 --by change",
	"threads demo:openmp-stencil --sample space=0.0001",
	"data testdata/manual/particles.sgt",
	"data testdata/manual/particles.sgt --fields all --cache L1=4KiB,8",
	"data testdata/manual/particles.sgt --fields n --map grid --heap --format md",
	"data testdata/manual/particles.sgt --fields grid",
	"data testdata/manual/particles.sgt --map nothing",
	"data one.din",
	"data demo:matmul-naive --sample space=0.5",
	"communication demo:openmp-stencil --sample space=0.2",
	"communication demo:openmp-stencil --sample space=0.2 --granularity page",
	"what-if demo:openmp-stencil --sample space=0.2 --cache L1=2KiB,full --cache L2=16KiB,full,shared=all --by core",
	"simulate demo:matmul-naive --sample space=0.5 --cache L1=2KiB,full",
	"help threads",
	"threads demo:false-sharing",
	"threads demo:openmp-stencil --cache L1=8KiB,4 --cache L2=64KiB,8,shared=2 --format md",
	"threads demo:openmp-stencil --by change --format csv",
	"threads demo:openmp-stencil --cores 1,2",
	"threads demo:openmp-stencil --cache L2=64KiB,8,shared=3 --domains 1/2 --by domain",
	"threads demo:false-sharing --curve --format csv",
	"threads demo:false-sharing --curve",
	"threads demo:false-sharing --format json",
	"threads demo:matmul-naive",
	"what-if demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,full",
	"what-if demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,full --format json",
	"what-if demo:matmul-blocked --cache L1=2KiB,8 --format csv",
	"what-if demo:matmul-blocked --cache L1=2KiB,8",
	"what-if demo:matmul-naive --hierarchy i7-4770K",
	"what-if demo:matmul-naive --hierarchy i7-6700 --format json",
	"what-if demo:matmul-naive --cache L1=2KiB,full --cache L2=10KiB,full --against L1=4KiB,full --against L2=10KiB,full",
	"what-if demo:false-sharing --hierarchy i7-6700 --against i7-6700 --against threads=one-core --by core --format json",
	"what-if demo:matmul-naive --hierarchy i7-6700 --against testdata/two.yaml --format csv",
	"what-if demo:matmul-naive --hierarchy i7-6700 --against haswell",
	"what-if demo:matmul-naive --hierarchy haswell",
	"what-if demo:matmul-naive --hierarchy testdata/two.yaml",
	"what-if demo:matmul-naive --hierarchy testdata/two.yaml --format md",
	"what-if demo:matmul-naive --hierarchy testdata/broken.yaml",
	"what-if demo:matmul-naive --cache L1=2KiB,8,latency=4,plru,no-allocate --cache memory=latency=100,bandwidth=8 --cache clock=2 --format csv",
	"what-if demo:matmul-naive --cache L1=2KiB,8,latency=4,colour=red",
	"what-if demo:matmul-naive --cache L1=2KiB,full --fail-if L1.misses>33919",
	"what-if demo:matmul-naive --cache L1=2KiB,full --fail-if L1.misses>33920",
	"counters testdata/multiply.sgp",
	"counters testdata/multiply.sgp --format json",
	"counters testdata/multiply.sgp --by function",
	"counters testdata/multiply.sgp --by function --sort invocations --format csv",
	"counters testdata/multiply.sgp --by block --sort instructions --format md",
	"counters demo:matmul-naive",
	"counters demo:array-list --by function --format csv",
	"counters ../../../../core/byfl/testdata/table2.byfl",
	"counters ../../../../core/byfl/testdata/table2.byfl --by function",
	"sites demo:matmul-naive --cache L1=2KiB,full --source ../../../../site/demos",
	"timeline demo:array-list --cache L1=8KiB,full --cache L2=32KiB,full",
	"timeline demo:array-list --hierarchy i7-6700",
	"timeline demo:false-sharing --cache L1=32KiB,8 --format csv",
	"sites demo:array-list --cache L1=8KiB,full --range 10%..35%",
	"sites demo:array-list --by object --cache L1=8KiB,8 --range 3000..5000 --format csv",
	"sites demo:array-list --range 35%..10%",
	"what-if demo:array-list --cache L1=8KiB,full --cache L2=32KiB,8 --range 10%..35%",
	"curve demo:array-list --range ..20%",
	"sites demo:matmul-naive --sample space=0.5 --range ..20%",
	"sites demo:matmul-naive",
	"sites demo:matmul-naive --by site --cache L1=2KiB,full --format csv",
	"sites demo:matmul-naive --by object --cache L1=2KiB,full --format json",
	"sites demo:array-list --by function --cache L1=8KiB,full --cache L2=32KiB,full --share 80%",
	"sites demo:array-list --cache L1=8KiB,full --previous --top 2 --format md",
	"sites demo:openmp-stencil --by object --cache L1=32KiB,full --sort references",
	"sites demo:false-sharing",
	"sites demo:false-sharing --by object --cache L1=32KiB,8 --cache L2=256KiB,8,shared=all --format csv",
	"communication demo:false-sharing",
	"communication demo:false-sharing --false-sharing --format csv",
	"communication demo:openmp-stencil --cache L1=1KiB,full",
	"communication demo:openmp-stencil --cache L1=1KiB,2 --by flow --granularity line",
	"communication demo:openmp-stencil --by flow --granularity page --format csv",
	"communication demo:openmp-stencil --by object --format md",
	"communication demo:openmp-stencil --by window --format json",
	"communication demo:openmp-stencil --by site --top 2",
	"communication demo:openmp-stencil --by site --granularity line",
	"communication demo:migratory-counter --by owner --format csv",
	"communication demo:matmul-naive",
	"help loops",
	"loops demo:matmul-naive --cache L1=2KiB,8 --loop 1.1.1 --format json",
	"loops demo:matmul-naive",
	"loops demo:matmul-naive --loop 1.1.1",
	"loops demo:matmul-naive --loop 2",
	"loops demo:array-list --arrays --share 10%",
	"loops demo:array-list --format csv --limit 20000",
	"loops demo:openmp-stencil --format md",
	"loops demo:openmp-stencil --each",
	"loops demo:ring --cache L1=2KiB,8 --each --format csv",
	"loops demo:ring --cache L1=2KiB,8 --loop 2+",
	"loops demo:matmul-blocked --format json",
	"loops testdata/multiply.sgp",
	"loops demo:matmul-naive --cache L1=2KiB,full --cache L2=8KiB,8",
	"loops demo:matmul-naive --cache L1=2KiB,full --loop 1.1.1 --format csv",
	"loops demo:matmul-naive --cache L1=2KiB,2 --loop 1.1",
	"help blocks",
	"blocks demo:matmul-naive --instructions matmul-naive.c:21",
	"blocks demo:matmul-naive --instructions matmul-naive.c:4",
	"blocks demo:matmul-naive --instructions matmul-naive.c:20 --by block",
	"blocks demo:matmul-naive",
	"blocks demo:array-list --by branch --top 3 --format md",
	"blocks demo:openmp-stencil --by block --format csv",
	"blocks demo:array-list --limit 20000 --top 2",
	"blocks demo:ring --by function --format json",
	"help pipeline",
	"pipeline demo:matmul-naive --hierarchy i7-6700",
	"pipeline demo:array-list --function main --processor neoverse-v2 --format csv",
	"pipeline testdata/rows.ll --processor skylake-avx512 --top 3",
	"pipeline testdata/rows.ll --processor nobody",
	"help multicore",
	"multicore testdata/team.sgt --cores 1,2,4,16 --hierarchy sasmm",
	"multicore testdata/team.sgt --cores 2,64 --hierarchy sasmm --sdcm none --by loops",
	"multicore testdata/team.sgt --cores 2,8 --hierarchy i7-4770K --processor skylake-avx512 --sdcm none",
	"multicore testdata/team.sgt --cores 4 --cache L1=8KiB,full --cache L2=128KiB,16,shared=2 --sdcm all --by cores --format csv",
	"multicore testdata/team.sgt --cores 1,4,16 --hierarchy sasmm --sdcm windows",
	"multicore testdata/team.sgt --cores 4 --cache L1=8KiB,8 --cache L2=128KiB,16,shared=2 --sdcm windows,rate=0.1,least=100,weights=corrected --seed 3 --format csv",
	"multicore testdata/team.sgt --cores 4 --hierarchy sasmm --division printed --sdcm windows,weights=printed --by sampling --format json",
	"multicore testdata/team.sgt --hierarchy sasmm --sdcm windows,rate=2",
	"multicore testdata/team.sgt --hierarchy sasmm --sdcm few",
	"multicore testdata/team.sgt --cores 3 --hierarchy sasmm --schedule guided --interleave uniform --seed 7 --sdcm none --format json",
	"multicore testdata/team.sgt --cores 4 --hierarchy sasmm --division region --sdcm none --format md",
	"multicore testdata/team.sgt --cores 4 --hierarchy sasmm --division printed --sdcm none --format csv",
	"multicore testdata/team-cut.sgt --cores 2 --hierarchy sasmm --sdcm none --by work",
	"multicore testdata/team.sgt --hierarchy sasmm --cores 1,65",
	"multicore testdata/team.sgt --hierarchy sasmm --division region --processor znver4",
	"multicore testdata/team.sgt --hierarchy sasmm --private 0x10-0x1f --cores 2",
	"multicore testdata/team.sgt --hierarchy sasmm --private 0x10",
	"multicore testdata/team.sgt --hierarchy sasmm --schedule dynamic,0",
	"multicore testdata/team.sgt --hierarchy sasmm -o team.sgp",
	"multicore testdata/team.sgt --hierarchy sasmm --by speedup",
	"multicore testdata/multiply.sgp --hierarchy sasmm",
	"multicore testdata/rows.ll --hierarchy sasmm",
	"multicore demo:openmp-stencil --hierarchy sasmm",
	"multicore demo:matmul-naive --hierarchy sasmm",
	"multicore - --hierarchy sasmm",
	"help scale",
	"scale --at n=72 n=16:testdata/scale/jacobi-16.sgt n=24:testdata/scale/jacobi-24.sgt n=32:testdata/scale/jacobi-32.sgt n=40:testdata/scale/jacobi-40.sgt --hierarchy i7-6700 --processor skylake-avx512 --check testdata/scale/jacobi-72.sgt --top 5",
	"scale --at n=100000 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt --top 3",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt --by law --format csv",
	"scale --at n=512 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt --cache L1=32KiB,full --by level --format json",
	"scale --at n=72 n=16:testdata/scale/jacobi-16.sgt n=24:testdata/scale/jacobi-24.sgt n=32:testdata/scale/jacobi-32.sgt n=40:testdata/scale/jacobi-40.sgt --by check --check testdata/scale/jacobi-72.sgt --format md",
	"scale --at n=45 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt --by law --top 4 --format md",
	"scale --at n=20 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt --by function",
	"scale --at n=10000000 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt n=32:testdata/scale/matmul-32.sgt",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt n=16:testdata/scale/matmul-24.sgt",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/jacobi-24.sgt",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/other.sgt",
	"scale --at n=72 m=16:testdata/scale/matmul-16.sgt n=24:testdata/scale/matmul-24.sgt",
	"scale --at n testdata/scale/matmul-16.sgt",
	"scale --at n=72 testdata/scale/matmul-16.sgt testdata/scale/matmul-24.sgt",
	"scale --at n=72,m=3 n=16,m=2:testdata/scale/matmul-16.sgt n=24,m=2:testdata/scale/matmul-24.sgt",
	"scale --at n=72 n=16:testdata/scale/matmul-16.sgt n=24:testdata/multiply.sgp",
	"blocks testdata/rows.ll",
	"blocks testdata/rows.ll --prof --by opcode",
	"blocks testdata/rows.ll --prof --enter sum=1000000000,main=0 --by function --format json",
	"blocks demo:matmul-naive --windows --by block --top 5",
	"blocks testdata/rows.ll --windows",
	"blocks testdata/rows.ll --template",
	"blocks demo:ring --template",
	"blocks testdata/rows.ll --probabilities testdata/rows.txt",
	"blocks testdata/rows.ll --probabilities testdata/rows.txt --set n=1000000 --by function --format csv",
	"blocks testdata/rows.ll --probabilities testdata/rows.txt --set m=7",
	"blocks testdata/rows.ll --probabilities testdata/rows.txt --set n=1e9",
	"blocks testdata/rows.ll --probabilities testdata/rows-bad.txt",
	"blocks demo:ring --probabilities testdata/rows.txt",
	"blocks testdata/rows.ll --set n=1",
	"blocks testdata/rows.ll --enter nobody=1",
	"blocks testdata/rows.ll --skip 5",
	"blocks testdata/multiply.sgp",
	"blocks demo:matmul-naive --prof",
	"blocks demo:matmul-naive --by line",
	"help convert",
	"help locality",
	"locality demo:matmul-naive --line 128",
	"locality demo:matmul-naive --by sets --causes",
	"locality demo:matmul-naive --by time --causes",
	"locality demo:matmul-naive --by place",
	"fold demo:matmul-naive",
	"loops demo:matmul-naive --propose 3 --cache L1=4KiB,2",
	"loops demo:matmul-naive --pad b=+8 --tile i=8,j=8 --hierarchy i7-6700 --format md",
	"loops demo:matmul-naive --interchange i,j --cache L1=4KiB,2 --format csv",
	"loops demo:matmul-naive --interchange i,k --cache L1=4KiB,2",
	"loops demo:matmul-naive --tile x=8 --cache L1=4KiB,2",
	"loops demo:matmul-naive --pad d=+8 --cache L1=4KiB,2",
	"loops demo:matmul-naive --array-of-structs a,b --nest 2 --cache L1=4KiB,2",
	"loops demo:matmul-naive --align 64",
	"analyze demo:array-list --analyses counters",
	"info demo:array-list",
	"info demo:array-list --format json",
	"info testdata/threads.sgt",
	"info testdata/threads.sgt --format json",
	"info testdata/threads.sgt --verify",
	"check demo:array-list --format json",
	"convert testdata/threads.sgt --to csv --limit 5 -o -",
	"convert testdata/threads.sgt --to lackey --threads 2 --limit 6 -o -",
	"convert testdata/threads.sgt --to din --kinds store --skip 3 --limit 4 -o -",
}

// answer is the output of one command line.
type answer struct {
	stdout, stderr string
	code           int
}

func (a answer) String() string {
	text := a.stdout
	if a.stderr != "" {
		text += "--- stderr\n" + a.stderr
	}
	return text + "--- exit " + strconv.Itoa(a.code) + "\n"
}

func stackglass(args ...string) answer { return askWith("", args...) }

func askWith(stdin string, args ...string) answer {
	return askContext(context.Background(), stdin, args...)
}

func askContext(ctx context.Context, stdin string, args ...string) answer {
	var stdout, stderr bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &stdout, &stderr)
	return answer{stdout.String(), stderr.String(), code}
}

var awkward = regexp.MustCompile(`[^a-zA-Z0-9.,=-]+`)

func TestGolden(t *testing.T) {
	named := map[string]bool{}
	for _, line := range goldenCommands {
		name := awkward.ReplaceAllString(line, "_") + ".txt"
		named[name] = true
		path := filepath.Join("testdata", "golden", name)
		t.Run(line, func(t *testing.T) {
			got := stackglass(strings.Fields(line)...).String()
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err, "\ncreate it with -update, and check it")
			}
			if got != string(want) {
				t.Errorf("%s\ngot:\n%s\nwant:\n%s", path, got, want)
			}
		})
	}
	entries, err := os.ReadDir(filepath.Join("testdata", "golden"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !named[e.Name()] {
			t.Errorf("testdata/golden/%s belongs to no command line of the test", e.Name())
		}
	}
}
