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

// Multicore predicts how the program of a sequential run would behave on several cores.
var Multicore = ask.Add(&ask.Verb{
	Name:    "multicore",
	Use:     "--cores N,… --cache NAME=SIZE,WAYS[,LINE][,PROPERTY…] …",
	Title:   "Hit ratios and speed-up on more cores, predicted from a single-threaded run",
	Machine: ask.AllCaches,
	Args: []ask.Arg{
		{Name: "cores", Default: "1,2,4,8,16", Help: "predict runs on these `NUMBERS` of cores, each at most 64"},
		{Name: "protocol", Default: "mesi", Words: []string{"mesi", "msi"}, Help: "the coherence `PROTOCOL` of private caches: mesi or msi"},
		{Name: "processor", Help: "also predict run times on this processor: a name, or a `FILE` with a description (default: none)"},
		{Name: "division", Default: "iterations", Words: []string{"iterations", "region", "printed"}, Help: "divide the work among the cores with this `METHOD`: iterations, region, or printed (as printed in the paper)"},
		{Name: "schedule", Help: "use this `SCHEDULE` for all loops, for example \"static\", \"dynamic,4\" or \"guided\" (default: the program's schedule)"},
		{Name: "interleave", Default: "round-robin", Words: []string{"round-robin", "uniform", "block", "time"}, Help: "interleave the cores' references in this `ORDER`: round-robin, uniform, block, time"},
		{Name: "seed", Kind: ask.Number, Default: "0", Help: "the `SEED` for a random order and for random replacement"},
		{Name: "private", Kind: ask.List, Help: "treat these `ADDRESSES` as private to each thread, for example 0x7f00-0x7fff (default: stacks; may be repeated)"},
		{Name: "sdcm", Default: "sample", Help: "also apply the stack distance cache model to this `SAMPLE`: sample (some lines), all (all lines, slow), windows (some executions of each block, for example windows,rate=0.05,least=100), or none"},
		{Name: "by", Words: coreTables, Help: "print only this `TABLE`: " + strings.Join(coreTables, ", ") + " (default for csv: rates)"},
	},
	Check: func(q ask.Question) error {
		if q.Text("by") == "speedup" && !q.Given("processor") {
			return &ask.Error{Text: "--by speedup needs a processor; choose a processor with --processor"}
		}
		_, err := CoresQuestion(q)
		return err
	},
	Missing: func(*profile.Profile) string { return "the division of work can only be predicted from the trace" },
	Answer: func(r *ask.Run, q ask.Question, d *report.Document) error {
		words, err := CoresQuestion(q)
		if err != nil {
			return err
		}
		if r.Predict == nil {
			return r.Cannot("the division of work can only be predicted from the trace; give the trace")
		}
		reply, err := r.Predict(words)
		if err != nil {
			return err
		}
		r.Predicted(words, q.Text("by"), reply, d)
		return nil
	},
})

// CoresQuestion converts a question of the verb multicore to a MulticoreQuestion.
func CoresQuestion(q ask.Question) (words answers.MulticoreQuestion, err error) {
	for text := range strings.SplitSeq(q.Text("cores"), ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 32)
		if err != nil {
			return words, &trace.OptionError{Option: "cores", Got: q.Text("cores"), Want: "numbers of cores, for example 1,2,4"}
		}
		words.Cores = append(words.Cores, uint32(n))
	}
	words.Division, words.Schedule, words.Interleave = q.Text("division"), q.Text("schedule"), q.Text("interleave")
	words.Seed, words.Private, words.SDCM = q.Number("seed"), q.List("private"), q.Text("sdcm")
	words.Protocol, words.Processor, words.Machine = q.Text("protocol"), q.Text("processor"), q.Machine.Lines()
	return words, nil
}
