package state

import (
	"slices"
	"strings"
)

// Problem is an error on the page: a sentence and optional details.
type Problem struct {
	Text    string
	Details string // one or more lines of text; "": none
}

// problemGap separates problems in one text.
const problemGap = "\n\n"

// AddProblem appends a problem to the problems that the user has not dismissed, unless these
// problems already contain it.
func AddProblem(problems, problem string) string {
	switch {
	case problem == "" || slices.Contains(strings.Split(problems, problemGap), problem):
		return problems
	case problems == "":
		return problem
	}
	return problems + problemGap + problem
}

// Problems splits the result of [AddProblem] into its problems, in the original order.
func Problems(problems string) []Problem {
	if problems == "" {
		return nil
	}
	var list []Problem
	for _, one := range strings.Split(problems, problemGap) {
		list = append(list, newProblem(one))
	}
	return list
}

// newProblem returns a problem from a sentence and an error that lists why each format rejected a
// file.
func newProblem(text string) Problem {
	name, rest, ok := strings.Cut(text, ": unknown format")
	inside, list, known := strings.Cut(rest, "; the file begins with ")
	last := strings.LastIndexByte(list, '\n')
	if !ok || !known || last < 0 {
		return Problem{Text: text}
	}
	list, advice := list[:last], list[last+1:]
	p := Problem{Details: "The file begins with " + list}
	if inside != "" {
		name += "," + inside + ","
	}
	if about, isKnown := strings.CutPrefix(advice, "the file is "); isKnown {
		p.Text = name + " is " + about + "."
	} else {
		p.Text = name + " is not in a supported format. " + upper(advice) + "."
	}
	return p
}
