package state

import (
	"slices"
	"strings"
)

// Problem is an error: a sentence, and details for those who want them.
type Problem struct {
	Text    string
	Details string // lines; "" if there are none
}

// problemGap separates problems in one text.
const problemGap = "\n\n"

// AddProblem appends a problem to the undismissed ones, unless it is there already.
func AddProblem(problems, problem string) string {
	switch {
	case problem == "" || slices.Contains(strings.Split(problems, problemGap), problem):
		return problems
	case problems == "":
		return problem
	}
	return problems + problemGap + problem
}

// Problems splits the text of AddProblem into problems, first ones first.
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

// newProblem puts a sentence before the error that lists what every format said of a file.
func newProblem(text string) Problem {
	name, rest, ok := strings.Cut(text, ": unknown format")
	inside, list, known := strings.Cut(rest, "; it begins with ")
	last := strings.LastIndexByte(list, '\n')
	if !ok || !known || last < 0 {
		return Problem{Text: text}
	}
	list, advice := list[:last], list[last+1:]
	p := Problem{Details: "It begins with " + list}
	if inside != "" {
		name += "," + inside + ","
	}
	if about, isKnown := strings.CutPrefix(advice, "this is "); isKnown {
		p.Text = name + " is " + about + "."
	} else {
		p.Text = name + " is in no format that is read here. " + upper(advice) + "."
	}
	return p
}
