// Package ask lists the questions about a run, and answers them. The command, the page, exports
// and comparisons all ask here, so that one question has one answer.
//
//  1. A [Verb] is a kind of question, such as what-if: its name, arguments with defaults
//     and allowed values, the analyses that it needs, and the function that answers. [Verbs]
//     lists them; the command makes its options from the list.
//  2. A [Question] is a verb with values for its arguments and with a hierarchy of caches. Its
//     words are the same on the command line, in an address of the page and in a message to a
//     worker, as in "threads by=core line=64".
//  3. A [Run] is the subject of questions: a profile, a module of LLVM IR or a loop-compressed
//     trace, and functions for what some answers need besides, such as reading files.
//  4. [Run.Answer] returns a [report.Document]: tables with units, facts of the input, and
//     warnings.
//
// To add a verb, write a file that adds it: see windows.go, the smallest one. Its help is a text of
// the command, in tools/stackglass/internal/command/help. Verbs whose answers need much code are in
// package ask/program, which the page's first program does not import.
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
	Name    string // on the command line and in addresses: "what-if"
	Use     string // the rest of a command line, after the name and FILE
	Title   string // in one line
	Args    []Arg
	Machine Machine  // whether it is about caches
	Usual   []string // default caches, for UsualCaches

	Spills bool // the analyses can use a spill store
	Groups bool // the user may say which threads share a core
	Places bool // the user may put all threads on one core
	Sums   bool // answers for people have ranges as rows, rather than fewer rows and columns
	Whole  bool // it counts every reference, even if the profile is of a sample
	First  bool // exports and reports begin with its answer

	// Needs returns the analyses of a trace that the answer needs.
	Needs func(Question) analysis.Analyses
	// Lines returns the line sizes that the answer needs, in bytes, ascending; nil: any.
	Lines func(Question) []uint32
	// Check checks the values of several arguments together, after each argument was checked by
	// itself; may be nil.
	Check func(Question) error
	// Missing returns why a profile has no answer, for any arguments, as a clause without a full
	// stop; "" if it has one.
	Missing func(*profile.Profile) string
	// Answer adds tables, facts of the input, and warnings to the document.
	Answer func(*Run, Question, *report.Document) error
	// Compared returns facts of a comparison of two runs that have an answer; may be nil.
	Compared func(runs [2]*Run, q Question) []report.Fact
}

// Machine says whether a verb is about caches.
type Machine uint8

// The choices.
const (
	NoCaches    Machine = iota
	SomeCaches          // it may be about one
	UsualCaches         // by default it is about Verb.Usual
	AllCaches           // it is about a hierarchy, which the user has to give
)

// Kind is the kind of values of an argument.
type Kind uint8

// The kinds.
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
	Help    string   // in one line, with the kind of value between backquotes
}

// Line is the argument of verbs that answer for one line size.
var Line = Arg{Name: "line", Kind: Number, Default: "64", Help: manual("the cache line in `BYTES`, a power of two from 8 to 4096")}

// all are the verbs. Each file adds its own.
var all []*Verb

// Add enters a verb into the registry, when its package is initialised.
func Add(v *Verb) *Verb {
	all = append(all, v)
	return v
}

// Verbs lists the verbs by their names.
func Verbs() []*Verb {
	list := slices.Clone(all)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// VerbOf returns the verb with that name, or nil.
func VerbOf(name string) *Verb {
	if at := slices.IndexFunc(all, func(v *Verb) bool { return v.Name == name }); at >= 0 {
		return all[at]
	}
	return nil
}

// Arg returns the argument with that name, or nil.
func (v *Verb) Arg(name string) *Arg {
	if at := slices.IndexFunc(v.Args, func(a Arg) bool { return a.Name == name }); at >= 0 {
		return &v.Args[at]
	}
	return nil
}

// lacks is for Verb.Missing: the reason why profiles that lack something have no answer.
func lacks(lacking func(*profile.Profile) bool, why string) func(*profile.Profile) string {
	return func(p *profile.Profile) string {
		if lacking(p) {
			return why
		}
		return ""
	}
}

// needs is a constant function for Verb.Needs.
func needs(a analysis.Analyses) func(Question) analysis.Analyses {
	return func(Question) analysis.Analyses { return a }
}

// oneLine is for Verb.Lines: the line size that was asked for.
func oneLine(q Question) []uint32 { return []uint32{q.Line()} }
