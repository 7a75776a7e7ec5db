package state

import "strings"

// Problem is what went wrong: a sentence, and what only some want to know.
type Problem struct {
	Text    string
	Details string // lines; "" where there are none
}

// problemGap stands between problems in one text.
const problemGap = "\n\n"

// AddProblem appends a problem to those that are not dismissed yet; one that is
// there already is not said again.
func AddProblem(problems, problem string) string {
	switch {
	case problem == "":
		return problems
	case problems == "":
		return problem
	}
	for _, one := range strings.Split(problems, problemGap) {
		if one == problem {
			return problems
		}
	}
	return problems + problemGap + problem
}

// Problems words what AddProblem made, first things first.
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

// newProblem puts a sentence before the answer that lists what every format
// said of a file. Its parts are those of [open.UnknownError], which reaches the
// page as text.
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
	what := contentOf(list)
	about, isKnown := strings.CutPrefix(advice, "this is ")
	switch {
	case what != "":
		p.Text = name + " is " + what + ", not a trace."
	case isKnown:
		p.Text = name + " is " + about + "."
	default:
		p.Text = name + " is in no format that is read here. " + upper(advice) + "."
	}
	return p
}

// contentOf names what is no trace and is dropped by mistake, by its first bytes
// in hexadecimal; "" for anything else.
func contentOf(hex string) string {
	for _, known := range []struct{ magic, what string }{
		{"89 50 4e 47 0d 0a", "a PNG picture"},
		{"ff d8 ff", "a JPEG picture"},
		{"47 49 46 38", "a GIF picture"},
		{"25 50 44 46", "a PDF document"},
		{"3c 21 44 4f 43 54 59 50 45", "a web page"},
		{"3c 21 64 6f 63 74 79 70 65", "a web page"},
		{"50 45 52 46 49 4c 45", "a recording of perf"},
	} {
		if strings.HasPrefix(hex, known.magic) {
			return known.what
		}
	}
	return ""
}
