package ask

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/trace"
)

// Question is a verb with values for its arguments.
type Question struct {
	Verb    *Verb
	Machine hierarchy.Hierarchy // the hierarchy that the user specified; it has no levels if the user specified none
	// the answer is in human-readable form, without the less important rows and columns
	Brief  bool
	Only   string              // if not "", key of a column; tables with many rows need no other column of numbers
	values map[string][]string // values of the arguments that the user specified, by name
}

// New returns a question whose arguments all have their default values.
func New(v *Verb) Question { return Question{Verb: v, values: map[string][]string{}} }

// With returns a copy of the question in which one argument has the given values. If there are no
// values, the argument has its default.
func (q Question) With(name string, values ...string) Question {
	q.values = maps.Clone(q.values)
	if q.values[name] = values; len(values) == 0 {
		delete(q.values, name)
	}
	return q
}

// Given reports whether the user specified the argument.
func (q Question) Given(name string) bool { return len(q.values[name]) > 0 }

// List returns all values of an argument.
func (q Question) List(name string) []string { return q.values[name] }

// Text returns the value of an argument, or its default.
func (q Question) Text(name string) string {
	if list := q.values[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return q.Verb.Arg(name).Default
}

// Number returns the value of an argument as a number. Check must have accepted the question.
func (q Question) Number(name string) uint64 {
	n, _ := strconv.ParseUint(q.Text(name), 10, 64)
	return n
}

// Is reports whether an argument of kind Switch is set.
func (q Question) Is(name string) bool { return q.Text(name) == "true" }

// Line returns the line size in question, in bytes.
func (q Question) Line() uint32 { return uint32(min(q.Number(Line.Name), 1<<31)) }

// Caches returns the hierarchy in question: the hierarchy that the user specified or, by default,
// the verb's usual caches or the first preset.
func (q Question) Caches() hierarchy.Hierarchy {
	if len(q.Machine.Levels) > 0 || q.Verb.Machine != UsualCaches {
		return q.Machine
	}
	h := q.Machine
	if len(q.Verb.Usual) == 0 {
		h = hierarchy.Presets()[0]
		h.Threads = q.Machine.Threads
	}
	for _, text := range q.Verb.Usual {
		_ = h.Add(text)
	}
	if q.Verb.Arg(Line.Name) != nil {
		for i := range h.Levels {
			h.Levels[i].LineBytes = q.Line()
		}
	}
	return h
}

// Check checks the values of the arguments. If the error is about a single argument, it is a
// *[trace.OptionError].
func (q Question) Check() error {
	for name, list := range q.values {
		a := q.Verb.Arg(name)
		if a == nil {
			return &trace.OptionError{Option: name, Got: strings.Join(list, ", "), Want: "an argument of " + q.Verb.Name + ": " + strings.Join(q.Verb.names(), ", ")}
		}
		if err := a.check(list); err != nil {
			return err
		}
	}
	if q.Verb.Machine == AllCaches && len(q.Machine.Levels) == 0 {
		return &trace.OptionError{Option: "cache", Want: "a level, for example L1=32KiB,8"}
	}
	if q.Verb.Check != nil {
		return q.Verb.Check(q)
	}
	return nil
}

func (v *Verb) names() (names []string) {
	for _, a := range v.Args {
		names = append(names, a.Name)
	}
	return names
}

func (a *Arg) check(list []string) error {
	for _, value := range list {
		switch _, err := strconv.ParseUint(value, 10, 64); {
		case a.Words != nil && !slices.Contains(a.Words, value):
			return &trace.OptionError{Option: a.Name, Got: value, Want: "one of " + strings.Join(a.Words, ", ")}
		case a.Kind == Number && err != nil:
			return &trace.OptionError{Option: a.Name, Got: value, Want: "a whole number"}
		case a.Kind == Switch && value != "true" && value != "false":
			return &trace.OptionError{Option: a.Name, Got: value, Want: "true or false"}
		}
	}
	if len(list) > 1 && a.Kind != List {
		return &trace.OptionError{Option: a.Name, Got: strings.Join(list, ", "), Want: "one value"}
	}
	return nil
}

// Words returns the question as words. The first word is the verb. The next words have the form
// name=value, one for each specified value, in the order of the verb's arguments. Then follow words
// of the form machine=LINE, one for each line of the hierarchy ([hierarchy.Hierarchy.Lines]). If
// Brief is set, the last word is "brief".
func (q Question) Words() []string {
	words := []string{q.Verb.Name}
	for _, a := range q.Verb.Args {
		for _, value := range q.values[a.Name] {
			words = append(words, a.Name+"="+value)
		}
	}
	for _, text := range q.Machine.Lines() {
		words = append(words, machine+"="+text)
	}
	if q.Brief {
		words = append(words, brief)
	}
	return words
}

// Names of the words of a question that specify the hierarchy and the form of the answer.
const (
	machine = "machine"
	brief   = "brief"
)

// Parse is the inverse of [Question.Words]: it converts words to a question. Parse also checks the
// question. If the error is about a single word, it is a *[trace.OptionError].
func Parse(words []string) (Question, error) {
	q, err := Read(words)
	if err != nil {
		return q, err
	}
	return q, q.Check()
}

// Read is like Parse, but checks only the verb and the hierarchy, so that the question may be
// incomplete.
func Read(words []string) (Question, error) {
	name := ""
	if len(words) > 0 {
		name = words[0]
	}
	v := VerbOf(name)
	if v == nil {
		return Question{}, &trace.OptionError{Option: "verb", Got: name, Want: "one of " + strings.Join(verbNames(), ", ")}
	}
	q := New(v)
	for _, word := range words[1:] {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case word == brief:
			q.Brief = true
		case name == machine:
			if err := q.Machine.Add(value); err != nil {
				return q, err
			}
		default:
			q = q.With(name, append(slices.Clone(q.values[name]), value)...)
		}
	}
	return q, nil
}

func verbNames() (names []string) {
	for _, v := range Verbs() {
		names = append(names, v.Name)
	}
	return names
}
