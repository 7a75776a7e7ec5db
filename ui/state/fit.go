package state

import (
	"strings"
	"unicode/utf8"
)

// MostText is how many bytes of a text are shown. Names of C++ templates have some
// thousands; others are no names that anybody reads.
const MostText = 8000

// Fit gives text, or the beginning of one that is too long to be shown, and how long
// it is. Exports have all of it.
func Fit(text string) string {
	if len(text) <= MostText {
		return text
	}
	end := MostText - 100
	for !utf8.RuneStart(text[end]) && end > MostText-110 {
		end--
	}
	// What stands for one letter in markup is not cut.
	if amp := strings.LastIndexByte(text[end-10:end], '&'); amp >= 0 {
		end += amp - 10
	}
	return text[:end] + "… (" + Exact(uint64(len(text))) + " bytes)"
}
