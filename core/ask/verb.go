// Package ask defines and answers the questions that can be asked about a run. The command, the
// page, exports and comparisons all use this package, so a question has the same answer everywhere.
//
//  1. A [Verb] is a kind of question, such as what-if. A verb has a name, arguments with defaults
//     and allowed values, a list of the analyses that it needs, and a function that computes the
//     answer. [Verbs] lists all verbs. The command derives its options from this list.
//  2. A [Question] is a verb with values for its arguments and with a cache hierarchy. The notation
//     of a question, such as "threads by=core line=64", is the same in URLs of the page and in
//     messages to workers.
//  3. A [Run] contains the data that answers are computed from: a profile, a module of LLVM IR or a
//     loop-compressed trace. A [Run] also contains functions that some answers call, for example to
//     read files.
//  4. [Run.Answer] returns a [report.Document]: tables with units, facts about the input, and
//     warnings.
//
// To add a verb, write a file that calls [Add]. The smallest example is windows.go. The help text
// of the verb is part of the command (tools/stackglass/internal/command/help). Verbs whose answers
// need a lot of code belong in package ask/program. Then the WebAssembly program that the page
// loads first does not contain the code of these verbs.
package ask

import (
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Verb is a kind of question that can be asked about a run.
type Verb struct {
	Name    string // the verb's name on the command line and in URLs of the page, such as "what-if"
	Use     string // the usage text after the verb and FILE
	Title   string // a one-line description
	Args    []Arg
	Machine Machine  // whether a cache hierarchy is needed
	Usual   []string // default caches if Machine is UsualCaches; nil means the first preset

	Spills bool // whether the analyses can use a spill store
	Groups bool // whether the user may choose which threads share a core
	Places bool // whether the user may put all threads on one core
	Sums   bool // whether brief answers combine rows into ranges instead of omitting rows and columns
	// whether the answer contains misses of source locations, so that its analysis must measure line
	// utilisation
	Measures bool
	Whole    bool // whether the answer is exact even for sampled profiles, because its counts include every reference
	First    bool // whether exports and reports begin with this verb's answer

	// Needs returns the analyses that the answer needs.
	Needs func(Question) analysis.Analyses
	// Lines returns the line sizes that the answer needs, in bytes and in ascending order. Lines
	// returns nil if any line size is suitable.
	Lines func(Question) []uint32
	// Check checks combinations of arguments, after each argument was checked individually. If
	// Check is nil, all combinations are allowed.
	Check func(Question) error
	// Missing returns the reason why a profile lacks the data that every answer of this verb needs,
	// as a clause without a full stop. Missing returns "" if the profile has the data.
	Missing func(*profile.Profile) string
	// Answer computes the answer: it adds tables, facts about the input, and warnings to the document.
	Answer func(*Run, Question, *report.Document) error
	// Compared returns facts about the comparison of two runs that both have an answer. Compared
	// may be nil.
	Compared func(runs [2]*Run, q Question) []report.Fact
}

// Machine specifies whether a verb needs a cache hierarchy.
type Machine uint8

// The values of Machine.
const (
	NoCaches    Machine = iota
	SomeCaches          // a hierarchy is optional
	UsualCaches         // the default is Verb.Usual or, if there is none, the first preset
	AllCaches           // the user must specify a hierarchy
)

// Kind is the type of an argument's values.
type Kind uint8

// The types of argument values.
const (
	Word   Kind = iota // a text or, if Arg.Words is set, one of these words
	Number             // a whole number
	Switch             // set or not set
	List               // a list of texts
)

// Arg is an argument of a verb.
type Arg struct {
	Name    string
	Kind    Kind
	Default string   // "" means no text, 0, or not set
	Words   []string // allowed values; nil means any value
	Help    string   // a one-line description, with a placeholder for the value in backquotes
}

// Line is the argument for the line size, for verbs whose answers are for a single line size.
var Line = Arg{Name: "line", Kind: Number, Default: "64", Help: manual("the size of a cache line in `BYTES`, a power of two from 8 to 4096")}

// allVerbs lists the verbs. Each verb's file adds the verb with [Add].
var allVerbs []*Verb

// Add registers a verb and returns it. Add must be called during package initialisation.
func Add(v *Verb) *Verb {
	allVerbs = append(allVerbs, v)
	return v
}

// Verbs returns the verbs, sorted by name.
func Verbs() []*Verb {
	list := slices.Clone(allVerbs)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// VerbOf returns the verb with this name, or nil.
func VerbOf(name string) *Verb {
	if at := slices.IndexFunc(allVerbs, func(v *Verb) bool { return v.Name == name }); at >= 0 {
		return allVerbs[at]
	}
	return nil
}

// Arg returns the argument with this name, or nil.
func (v *Verb) Arg(name string) *Arg {
	if at := slices.IndexFunc(v.Args, func(a Arg) bool { return a.Name == name }); at >= 0 {
		return &v.Args[at]
	}
	return nil
}

// missingIf returns a function for Verb.Missing. For a profile p, the returned function returns the
// text in why if lacking(p) is true, and otherwise "".
func missingIf(lacking func(*profile.Profile) bool, why string) func(*profile.Profile) string {
	return func(p *profile.Profile) string {
		if lacking(p) {
			return why
		}
		return ""
	}
}

// alwaysNeeds returns a function for Verb.Needs. This function returns the given analyses for every
// question.
func alwaysNeeds(a analysis.Analyses) func(Question) analysis.Analyses {
	return func(Question) analysis.Analyses { return a }
}

// oneLine implements Verb.Lines for verbs with the argument Line.
func oneLine(q Question) []uint32 { return []uint32{q.Line()} }
