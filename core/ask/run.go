package ask

import (
	"errors"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sourcefile"
)

// Run contains the data about which questions are asked. All fields of function type may be nil.
type Run struct {
	Name     string           // name of the run's file, as the user knows it
	Profile  *profile.Profile // nil if field Module, Folded or Measured is set
	Digest   string           // the digest of Profile, in hexadecimal digits; "" if it is not known yet
	Module   []byte           // the LLVM IR text of a program that was not run
	Folded   *Folded          // a loop-compressed trace that was not expanded
	Measured []byte           // the text of measurements of a run that was not traced
	Warnings []string         // warnings that apply to all answers; [NewRun] adds warnings about the profile

	// Readable demangles a function's name.
	Readable func(string) string
	// Source returns the text of a source line, or "" if the text is unknown. Sequences of blanks are
	// collapsed into one. If Source is nil, the text is read from the files stored in the profile.
	Source func(file string, line uint32) string
	// File reads a file whose name is the value of an argument.
	File func(name string) ([]byte, error)
	// Windows contains reuse profiles of sampled block executions, for 64-byte lines. Windows may
	// be nil.
	Windows []blocks.SampledReuse
	// Predict reads the trace again and predicts the run on several cores.
	Predict func(answers.MulticoreQuestion) (*answers.Reply, error)
	Replay  *Replay // reads the trace again; nil if there is no trace
	// Beside is the run with which this run is compared, or nil. In a comparison, the answers of both
	// runs contain the same rows and columns, so that they can be joined.
	Beside *Run
	// GoOn is called regularly while a long answer is computed. GoOn returns false if the user no
	// longer wants the answer.
	GoOn func() bool
	// Partial is called while a long answer is computed. The function soFar returns a preliminary
	// answer: the tables and warnings computed so far, and a table "progress".
	Partial func(soFar func() *report.Document)

	Analysed bool   // the profile was computed from a trace for this question, and not read from a file
	Cores    string // groups of threads that share a core, as specified by the user; "" if not specified

	asker  *hierarchy.Asker
	ranker *attribution.Ranker
	files  *sourcefile.Files
	part   *Run   // the part of the run about which the last question was asked, or nil
	partOf [2]int // the windows of the part, as a half-open range
}

// Folded contains a loop-compressed trace and its program.
type Folded struct {
	Tree    *loops.Tree
	Program *trace.Program // the traced program; may be nil
	Partial bool           // whether the end of the trace could not be read
}

// NewRun returns a run for a profile that was read from a file.
func NewRun(name string, p *profile.Profile) *Run {
	return &Run{Name: name, Profile: p, Warnings: Doubts(name, p)}
}

// Asker returns the run's cache predictor. The predictor caches intermediate results, because many
// predictions need the same results.
func (r *Run) Asker() *hierarchy.Asker {
	if r.asker == nil {
		r.asker = hierarchy.NewAsker(r.Profile)
	}
	return r.asker
}

// Ranker returns the run's ranker, which attributes misses to sites. Ranker returns nil if the
// profile has no sites.
func (r *Run) Ranker() *attribution.Ranker {
	if r.ranker == nil {
		r.ranker, _ = attribution.New(r.Profile)
	}
	return r.ranker
}

// SourceText returns a function that looks up the text of a source line. SourceText returns nil if
// there are no source files.
func (r *Run) SourceText() func(file string, line uint32) string {
	if r.Source != nil || r.Profile == nil || len(r.Profile.Sources) == 0 {
		return r.Source
	}
	return r.Files().Line
}

// Files returns the source files stored in the profile. The run caches the result, so that each
// file is decompressed, and matched with other versions, only once.
func (r *Run) Files() *sourcefile.Files {
	if r.files == nil {
		r.files = sourcefile.New(r.Profile.Sources)
	}
	return r.files
}

// Error is a sentence that explains why a question has no answer.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Cannot returns an error with the given text, prefixed with the name of the run.
func (r *Run) Cannot(text string) error { return &Error{r.Name + ": " + text} }

// ErrStopped is returned if [Run.GoOn] stopped the computation of an answer.
var ErrStopped = &Error{"the answer is no longer needed"}

// Wanted reports whether the user still wants the answer (see [Run.GoOn]).
func (r *Run) Wanted() bool { return r.GoOn == nil || r.GoOn() }

// ReadFile reads the file whose name is the value of the given argument. ReadFile returns nil if
// the argument is not set.
func (r *Run) ReadFile(q Question, arg string) (text []byte, err error) {
	name := q.Text(arg)
	switch {
	case name == "":
		return nil, nil
	case r.File == nil:
		err = errors.New("this program cannot open files by name")
	default:
		text, err = r.File(name)
	}
	if err != nil {
		return nil, &Error{"--" + arg + " " + name + ": " + err.Error()}
	}
	return text, nil
}

// Answer answers a question. If there is no answer, Answer returns an *[Error] or a
// *[trace.OptionError] with a message for the user.
func (r *Run) Answer(q Question) (*report.Document, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	if q.Verb.Whole {
		r = r.unsampled()
	}
	d := &report.Document{Schema: "stackglass." + q.Verb.Name, Version: 1}
	if err := q.Verb.Answer(r, q, d); err != nil {
		return nil, err
	}
	if q.Verb.Groups {
		d.Warnings = append(d.Warnings, r.sharedCores()...)
	}
	d.Warnings = slices.Concat(r.Warnings, d.Warnings)
	NameFunctions(d.Tables, r.Readable)
	return d, nil
}

// FunctionName demangles a function's name if [Run.Readable] is set.
func (r *Run) FunctionName(name string) string {
	if r.Readable == nil {
		return name
	}
	return r.Readable(name)
}

// NameFunctions demangles the names of functions in tables. The parameter readable demangles a
// name; it may be nil.
func NameFunctions(tables []report.Table, readable func(string) string) {
	for i := range tables {
		column := tables[i].Index("function")
		if column < 0 || readable == nil {
			continue
		}
		for _, row := range tables[i].Rows {
			if name := row[column].Plain(); name != "" && !row[column].IsNumber() {
				row[column] = report.TextOf(readable(name))
			}
		}
	}
}

// unsampled returns a copy of the run whose profile is not marked as sampled.
func (r *Run) unsampled() *Run {
	if !r.Profile.Sampled.Estimates() {
		return r
	}
	whole, p := *r, *r.Profile
	doubt := r.Name + ": " + hierarchy.SampleDoubt(p.Sampled)
	whole.Warnings = slices.DeleteFunc(slices.Clone(r.Warnings), func(text string) bool { return text == doubt })
	p.Sampled = nil
	whole.Profile, whole.asker, whole.ranker, whole.part = &p, nil, nil, nil
	return &whole
}

// Facts returns facts about the input of an answer. The parameter lineBytes is 0 for answers about
// several line sizes.
func (r *Run) Facts(lineBytes uint32) []report.Fact {
	p := r.Profile
	facts := []report.Fact{
		{Key: "file", Label: "file", Value: report.TextOf(r.Name)},
		{Key: "trace_format", Label: "trace format", Value: report.TextOf(p.Input.Header.Format)},
		{Key: "kinds", Label: "kinds", Value: report.TextOf(p.Input.Kinds.String())},
		{Key: "references", Label: "references", Value: report.Count(p.Totals.AllReferences())},
		{Key: "complete", Label: "complete", Value: report.YesNo(!p.State.Partial)},
	}
	facts = append(facts, answers.Sample(p)...)
	if lineBytes != 0 {
		facts = append(facts, report.Fact{Key: "line_bytes", Label: "line size (bytes)", Value: report.Count(uint64(lineBytes))})
	}
	return facts
}

// Doubts returns the warnings about a profile that apply to all answers.
func Doubts(name string, p *profile.Profile) (list []string) {
	say := func(text string) { list = append(list, name+": "+text) }
	if p.State.Partial {
		say("the answer covers only a part of the trace: " + p.State.Reason)
	}
	if p.Totals.AllReferences() == 0 {
		say(NoReference)
	}
	for _, text := range PartDoubts(p) {
		say(text)
	}
	if p.Input.Threads != nil && !p.Input.Header.Threads {
		say("threads were chosen, but the trace has no thread numbers, so nothing was analysed")
	}
	if text := hierarchy.SampleDoubt(p.Sampled); text != "" {
		say(text)
	}
	if text := hierarchy.PredictedDoubt(p.Predicted); text != "" {
		say(text)
	}
	switch n := p.Totals.BadRecords; {
	case n == 1:
		say("1 record could not be read and was left out")
	case n > 1:
		say(strconv.FormatUint(n, 10) + " records could not be read and were left out")
	}
	return list
}

// PartDoubts returns the warnings about the profile of a part of a run.
func PartDoubts(p *profile.Profile) (list []string) {
	if p.Totals.AllReferences() == 0 {
		return nil
	}
	const cold = "so the first access to each line is a cold miss, "
	number := func(n uint64) string { return report.Count(n).Human() }
	recorded := p.Input.Header.Extent
	if n := recorded.After; n > 0 {
		list = append(list, "the recording begins with empty caches after the first "+number(n)+" references of each thread, "+cold+"values that were written earlier have no source, and memory blocks that were allocated earlier are unknown")
	}
	if n := recorded.For; n > 0 {
		list = append(list, "the recording contains at most "+number(n)+" references of each thread")
	}
	if n := p.Input.Skip; n > 0 {
		list = append(list, "the analysis begins at reference "+number(n)+" with empty caches and counts references from there, "+cold+"and values that were written earlier have no source")
	}
	return list
}

// NoReference is the warning about a profile without references.
const NoReference = "no references were analysed: the trace contains no references that match the chosen kinds, threads and part"
