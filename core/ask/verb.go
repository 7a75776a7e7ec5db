// Package ask lists the questions about a run, and answers them. The command, the page, exports and
// comparisons all use this package, so a question has the same answer everywhere.
//
//  1. A [Verb] is a kind of question, such as what-if. A verb has a name, arguments with defaults
//     and allowed values, a list of the analyses that it needs, and a function that computes the
//     answer. [Verbs] lists the verbs. The command derives its options from the list.
//  2. A [Question] is a verb with values for its arguments and with a cache hierarchy. The notation
//     of a question, such as "threads by=core line=64", is the same on the command line, in a URL
//     of the page and in a message to a worker.
//  3. A [Run] contains the data from which questions are answered: a profile, a module of LLVM IR
//     or a loop-compressed trace. A run also contains functions that some answers need, for example
//     to read files.
//  4. [Run.Answer] returns a [report.Document]: tables with units, facts of the input, and
//     warnings.
//
// To add a verb, write a file that calls [Add]. The smallest example is windows.go. The verb's help
// text belongs to the command, in tools/stackglass/internal/command/help. Verbs whose answers need
// a lot of code belong to package ask/program, because the first program that the page loads should
// not contain that code.
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
	Use     string // the rest of the command line, after the name and FILE
	Title   string // a description in one line
	Args    []Arg
	Machine Machine  // whether the verb needs a cache hierarchy
	Usual   []string // default caches, for UsualCaches; nil: the first preset

	Spills bool // the analyses can use a spill store
	Groups bool // the user may choose which threads share a core
	Places bool // the user may put all threads on one core
	Sums   bool // answers for people combine rows into ranges instead of omitting rows and columns
	// the answer contains misses of source locations, and its analysis measures line utilisation
	Measures bool
	Whole    bool // the answer counts every reference, even if the profile is from a sample
	First    bool // exports and reports begin with this verb's answer

	// Needs returns the analyses of a trace that the answer needs.
	Needs func(Question) analysis.Analyses
	// Lines returns the line sizes that the answer needs, in bytes, ascending; nil: any.
	Lines func(Question) []uint32
	// Check checks combinations of arguments after each argument was checked alone. nil: all
	// combinations are allowed
	Check func(Question) error
	// Missing returns the reason why a profile has no answer for any arguments, as a clause without
	// a full stop, or "" if there is an answer.
	Missing func(*profile.Profile) string
	// Answer adds tables, facts of the input, and warnings to the document.
	Answer func(*Run, Question, *report.Document) error
	// Compared returns facts about the comparison of two runs that both have an answer. nil: there
	// are no such facts
	Compared func(runs [2]*Run, q Question) []report.Fact
}

// Machine specifies whether a verb needs a cache hierarchy.
type Machine uint8

// The values of Machine.
const (
	NoCaches    Machine = iota
	SomeCaches          // the hierarchy is optional
	UsualCaches         // the default is Verb.Usual or, if there is none, the first preset
	AllCaches           // the user must specify a hierarchy
)

// Kind is the kind of an argument's values.
type Kind uint8

// The kinds of argument values.
const (
	Word   Kind = iota // text, or one of Arg.Words
	Number             // a whole number
	Switch             // present or absent
	List               // several texts
)

// Arg is an argument of a verb.
type Arg struct {
	Name    string
	Kind    Kind
	Default string   // "": none, 0, or absent
	Words   []string // allowed values; nil: any
	Help    string   // a description in one line, with the kind of value between backquotes
}

// Line is the argument of verbs whose answer is for one line size.
var Line = Arg{Name: "line", Kind: Number, Default: "64", Help: manual("the size of a cache line in `BYTES`, a power of two from 8 to 4096")}

// all lists the verbs. Each file adds its verb.
var all []*Verb

// Add adds a verb to the list when its package is initialised, and returns it.
func Add(v *Verb) *Verb {
	all = append(all, v)
	return v
}

// Verbs returns the verbs, sorted by name.
func Verbs() []*Verb {
	list := slices.Clone(all)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// VerbOf returns the verb with this name, or nil.
func VerbOf(name string) *Verb {
	if at := slices.IndexFunc(all, func(v *Verb) bool { return v.Name == name }); at >= 0 {
		return all[at]
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

// lacks returns a function for Verb.Missing that returns the text why if lacking is true for a
// profile.
func lacks(lacking func(*profile.Profile) bool, why string) func(*profile.Profile) string {
	return func(p *profile.Profile) string {
		if lacking(p) {
			return why
		}
		return ""
	}
}

// needs returns a function for Verb.Needs that always returns a.
func needs(a analysis.Analyses) func(Question) analysis.Analyses {
	return func(Question) analysis.Analyses { return a }
}

// oneLine is a function for Verb.Lines that returns the line size in question.
func oneLine(q Question) []uint32 { return []uint32{q.Line()} }
