package state

import "github.com/stackglass/stackglass/core/attribution"

// CodeBy is what misses in the code are summed up by.
type CodeBy string

// The choices.
const (
	ByLine     CodeBy = "" // of source
	BySite     CodeBy = "site"
	ByFunction CodeBy = "function"
	ByObject   CodeBy = "object"
)

// CodeBys lists the choices in the order of the page.
func CodeBys() []CodeBy { return []CodeBy{ByLine, BySite, ByFunction, ByObject} }

// Name is what the page calls it.
func (b CodeBy) Name() string {
	switch b {
	case BySite:
		return "instruction"
	case ByFunction:
		return "function"
	case ByObject:
		return "data structure"
	}
	return "source line"
}

// codeByOf reads what the URL's hash says; lines for anything unknown.
func codeByOf(text string) CodeBy {
	for _, by := range CodeBys() {
		if text == string(by) {
			return by
		}
	}
	return ByLine
}

// attributed returns the grouping of package attribution.
func (b CodeBy) attributed() attribution.By {
	if b == ByLine {
		return attribution.Line
	}
	return attribution.By(b)
}
