package answers

import (
	"github.com/stackglass/stackglass/core/report"
	"slices"
	"strconv"
	"strings"
)

// MulticoreQuestion is a Question about the trace of a single-threaded run of an OpenMP program.
// The answer predicts how the program's threads would use caches on several cores, and how long the
// program would take (package multicore/predict). Text fields use the syntax of the command line;
// "" means the default.
//
// There is one reply for each number of cores, and each reply also contains the results of the
// earlier replies. In the reply for the number of cores in the field Keep, Bytes is the encoded
// profile of the synthesised threads. The reply has the following tables, listed by key. The first
// column of each table, cores, contains the number of cores:
//
//	rates    level, method, caches, accesses, hits, misses, coherence_misses, global_rate, local_rate,
//	         mean_rate (of the caches' local rates, equally weighted), low, high (of the global one);
//	         global_off, mean_off: half the width of the 95 % confidence interval
//	sampling level, method, windows, executions (all windows), lines, accesses
//	         (line accesses in the sample), of (all line accesses), share: present if rates are estimates
//	cores    core, level, accesses, hits, misses, coherence_misses, local_rate
//	work     core, references, cycles (of its own work; none without a processor)
//	loops    source, schedule (of the program), divided (the schedule used), times, iterations,
//	         fewest (iterations of one execution): the worksharing loops
//	notes    text: sentences about the numbers
//	speedup  cycles, milliseconds, speedup, efficiency; losses as shares of all cores'
//	         time: serial, imbalance, copied, caches, bandwidth; limit (the largest loss)
//
// In the page, an additional table lists the processors, as for a ModelQuestion. This additional
// table does not have the column "cores".
//
// Rates and shares are between 0 and 1. Methods are named as in package hierarchy: "simulated" is
// exact for the synthesised threads, "sdcm" is a model of the same threads, "sampled-sdcm" is the
// same model for a sample of the threads' cache lines, and "windowed-sdcm" is the same model for
// sampled executions of each block.
type MulticoreQuestion struct {
	Name   string // the name of the trace file, for messages
	Format string // a value of --input-format; "" means that the format is detected

	Cores []uint32 // numbers of cores for which a run is predicted, in the order of the replies
	// Division selects how the work of a parallel region is divided among the cores. Schedule
	// overrides the program's loop schedules. Interleave selects the order in which the cores'
	// references are interleaved. Seed is the random seed.
	Division, Schedule, Interleave string
	Protocol                       string // coherence protocol of private caches: mesi or msi
	Seed                           uint64
	// ranges of private addresses, such as 0x7f00-0x7fff; nil means the threads' stacks
	Private   []string
	Machine   []string // the hierarchy, one level per line (hierarchy.Lines)
	Processor string   // the processor for which times are predicted; "" if no times are predicted
	// SDCM selects the input of the stack distance cache model, which is computed in addition to
	// simulated caches: "sample" (a few lines of the threads), "all" (every access), "windows" (some
	// executions of each block, with options after commas, as in
	// windows,rate=0.05,least=100,weights=printed) or "none". Keep is the number of cores for which
	// the reply contains the profile; 0 means no profile.
	SDCM string
	Keep uint32
}

func (q *MulticoreQuestion) fields(f *Fields) {
	f.Text("name", &q.Name)
	f.Text("format", &q.Format)
	f.Numbers("cores", &q.Cores)
	f.Text("division", &q.Division)
	f.Text("schedule", &q.Schedule)
	f.Text("interleave", &q.Interleave)
	f.Text("protocol", &q.Protocol)
	f.Wide("seed", &q.Seed)
	f.Texts("private", &q.Private)
	f.Texts("machine", &q.Machine)
	f.Text("processor", &q.Processor)
	f.Text("sdcm", &q.SDCM)
	f.Number("keep", &q.Keep)
}

// CoresNotes returns the distinct notes of a reply. The parameter t is the reply's table of notes.
// If a note applies only to some numbers of cores, it begins with these numbers.
func CoresNotes(t *report.Table, answered int) (list []string) {
	var texts []string
	of := map[string][]int{}
	for i := 0; t != nil && i < len(t.Rows); i++ {
		text := textAt(t, i, "text")
		if of[text] == nil {
			texts = append(texts, text)
		}
		if cores, _ := numberAt(t, i, "cores"); !slices.Contains(of[text], int(cores)) {
			of[text] = append(of[text], int(cores))
		}
	}
	for _, text := range texts {
		if n := len(of[text]); n < answered {
			slices.Sort(of[text])
			text = coresText(of[text]) + ": " + text
		}
		list = append(list, text)
	}
	return list
}

// coresText returns a list of core counts as text, such as "2, 4 cores".
func coresText(list []int) string {
	if len(list) == 1 && list[0] == 1 {
		return "1 core"
	}
	var words []string
	for _, n := range list {
		words = append(words, strconv.Itoa(n))
	}
	return strings.Join(words, ", ") + " cores"
}

// CoresFacts is the key of an additional table of a reply. This table contains facts about the
// trace, as keys and values: for example trace_format, regions (the number of parallel regions) and
// windows (how windows are chosen).
const CoresFacts = "facts"

// Question returns q as a Question.
func (q MulticoreQuestion) Question() Question {
	return Question{Of: OfCores, Words: WordsOf(q.fields)}
}

// ReadMulticoreQuestion reads the words of a question. The error is a *[trace.OptionError].
func ReadMulticoreQuestion(words []string) (q MulticoreQuestion, err error) {
	err = ReadWords(words, q.fields)
	return q, err
}

// Series is a line of a chart with the number of cores on the x-axis.
type Series struct {
	Name   string // the name of the level; "" for the whole hierarchy
	Method string
	Points []SeriesPoint // in the order of the table, which is sorted by number of cores
}

// SeriesPoint is a value with its 95 % confidence interval, if it is an estimate.
type SeriesPoint struct {
	Cores            int
	Value, Low, High float64
	Bounded          bool
}

// Rates returns the hit ratios by number of cores, with a series for each level and method. The
// column is "global_rate", "local_rate" or "mean_rate". Only global ratios have confidence
// intervals.
func (r *Reply) Rates(column string) []Series {
	t := r.Table("rates")
	if t == nil {
		return nil
	}
	return seriesOf(t, column, column == "global_rate")
}

// SpeedUps returns the speed-up, or another column of the speed-up table, by number of cores. If
// the question names no processor, the series has no points.
func (r *Reply) SpeedUps(column string) Series {
	if t := r.Table("speedup"); t != nil {
		for _, s := range seriesOf(t, column, false) {
			return s
		}
	}
	return Series{}
}

// seriesOf groups the values of a column by level and method, in the order of their first rows. A
// row without a value adds no point to its series.
func seriesOf(t *report.Table, column string, bounded bool) (list []Series) {
	of := map[[2]string]int{}
	for i := range t.Rows {
		key := [2]string{textAt(t, i, "level"), textAt(t, i, "method")}
		value, ok := numberAt(t, i, column)
		if !ok {
			continue
		}
		at, known := of[key]
		if !known {
			at = len(list)
			of[key], list = at, append(list, Series{Name: key[0], Method: key[1]})
		}
		cores, _ := numberAt(t, i, "cores")
		p := SeriesPoint{Cores: int(cores), Value: value}
		if bounded {
			low, lowest := numberAt(t, i, "low")
			high, highest := numberAt(t, i, "high")
			if p.Bounded = lowest && highest; p.Bounded {
				p.Low, p.High = low, high
			}
		}
		list[at].Points = append(list[at].Points, p)
	}
	return list
}

func textAt(t *report.Table, row int, column string) string {
	if at := t.Index(column); at >= 0 {
		return t.Rows[row][at].Plain()
	}
	return ""
}

func numberAt(t *report.Table, row int, column string) (x float64, ok bool) {
	if at := t.Index(column); at >= 0 {
		return t.Rows[row][at].Number()
	}
	return 0, false
}
