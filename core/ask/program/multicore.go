package program

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

var coreTables = []string{"rates", "speedup", "work", "cores", "loops", "sampling"}

// Multicore predicts what the threads of a sequential run would do.
var Multicore = ask.Add(&ask.Verb{
	Name:  "multicore",
	Use:   "--cores N,… --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
	Title: "Hit rates and speed-up on any number of cores, from a run with one thread",
	Help: `Predict what the threads of an OpenMP program would do to private and shared caches,
and how much sooner they would be done, from the trace of a run with one thread:

  stackglass cc -- clang -O2 -g -fopenmp app.c -o app && OMP_NUM_THREADS=1 ./app

The work of parallel regions is divided as OpenMP would, by the iterations of its
loops and their schedules, and what is private to a thread lies apart for each. The
threads' references go through the caches, kept coherent, one after the other: that is
exact for the threads as they are mimicked ("simulated"). "sampled-sdcm" is the stack
distance cache model of the same threads, as PPT-SASMM has it, from a sample of their
lines, and "windowed-sdcm" from windows: some executions of each block, as the paper's
Algorithm 3 has it, one in a hundred and 30 at least, or as --sdcm windows,rate=0.05,
least=100 says. P(BB), how much a block counts, is counted, or by the paper's equations:
weights=corrected or weights=printed. ± is half of the interval that has the truth in 95
of 100 samples; --by sampling tells what was looked at. Local rates are of what comes to a level, global ones of all accesses; the mean
weighs all caches of a level the same.

--division region or printed divides the executions of each block instead, as the paper
does. --schedule stands in for those of the program. --interleave is the order of the
cores' references, which nobody knows.

--processor adds times: what the blocks of each core take, with loads at the latency of
where their lines are, and what is lost to serial work, imbalance, work that all do
again, slower loads and the bandwidth of memory. They are against one core.

--at predicts hit rates at an input that nobody ran, from runs at two or more small ones:
how often blocks run on each core goes on by laws, as "scale" has it, and the reuse of
each block is kept as in the largest run, as in PPT-SASMM, or followed from run to run.
Take sizes that the cores divide alike. --check holds it against a run.

Block-labelled traces of PPT tell no loops: --division is region or printed. Which blocks
are parallel, and which hold shared variables, is told by their names, in the trace or
in the table that Byfl prints (--ppt-blocks); other files of PPT are held against it.

-o keeps the profile of the threads of one number of cores, which all other verbs take.`,
	Example: "  stackglass multicore app.sgt --cores 1,2,4,8,16 --hierarchy sasmm\n" +
		"  stackglass multicore app.sgt --cores 8 --schedule dynamic,4 --cache L1=32KiB,8 --cache L2=1MiB,16,shared=all -o app-8.sgp\n" +
		"  stackglass multicore app.sgt --cores 2,4,8 --hierarchy i7-4770K --processor skylake-avx512 --by speedup\n" +
		"  stackglass multicore --at n=512 n=64:a.sgt n=96:b.sgt n=128:c.sgt --cores 1,4,16 --hierarchy sasmm",
	Machine: ask.AllCaches,
	Args: []ask.Arg{
		{Name: "cores", Default: "1,2,4,8,16", Help: "the `NUMBERS` of cores, each up to 64"},
		{Name: "protocol", Default: "mesi", Words: []string{"mesi", "msi"}, Help: "what private caches know of each other's lines: mesi or msi"},
		{Name: "processor", Help: "whose times: a name, or a `FILE` that describes one (default: none)"},
		{Name: "division", Default: "iterations", Words: []string{"iterations", "region", "printed"}, Help: "how work is divided: iterations, region, printed"},
		{Name: "schedule", Help: "divide all loops by this `SCHEDULE`, as in static, static,1, dynamic,4, guided (default: each as the program asks)"},
		{Name: "interleave", Default: "round-robin", Words: []string{"round-robin", "uniform", "block", "time"}, Help: "the order of the cores' references: round-robin, uniform, block, time"},
		{Name: "seed", Kind: ask.Number, Default: "0", Help: "another order by chance, and other random replacement, by another `NUMBER`"},
		{Name: "private", Kind: ask.List, Help: "`ADDRESSES` that each thread has for itself, as in 0x7f00-0x7fff (default: stacks; may be repeated)"},
		{Name: "sdcm", Default: "sample", Help: "what the stack distance cache model says, too: from a sample of lines, all of them (takes long), windows of each block (as in windows,rate=0.05,least=100), or none"},
		{Name: "by", Words: coreTables, Help: "print one table alone: " + strings.Join(coreTables, ", ") + " (csv: rates)"},
	},
	Check: func(q ask.Question) error {
		if q.Text("by") == "speedup" && !q.Given("processor") {
			return &ask.Error{Text: "--by speedup: times are those of a processor; name one by --processor"}
		}
		_, err := CoresQuestion(q)
		return err
	},
	Missing: func(*profile.Profile) string { return "how work is divided can only be told from the trace" },
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		words, err := CoresQuestion(q)
		if err != nil {
			return err
		}
		if r.Predict == nil {
			return r.Cannot("how work is divided can only be told from the trace; give that")
		}
		reply, err := r.Predict(words)
		if err != nil {
			return err
		}
		r.Predicted(words, q.Text("by"), reply, d)
		return nil
	},
})

// CoresQuestion is what is asked of the trace.
func CoresQuestion(q ask.Question) (words answers.MulticoreQuestion, err error) {
	for text := range strings.SplitSeq(q.Text("cores"), ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return words, &trace.OptionError{Option: "cores", Got: q.Text("cores"), Want: "numbers of cores, as in 1,2,4"}
		}
		words.Cores = append(words.Cores, uint32(n))
	}
	words.Division, words.Schedule, words.Interleave = q.Text("division"), q.Text("schedule"), q.Text("interleave")
	words.Seed, words.Private, words.SDCM = q.Number("seed"), q.List("private"), q.Text("sdcm")
	words.Protocol, words.Processor, words.Machine = q.Text("protocol"), q.Text("processor"), q.Machine.Lines()
	return words, nil
}
