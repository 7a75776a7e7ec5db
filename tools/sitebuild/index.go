package main

import (
	"bytes"
	"html/template"
	"regexp"
	"strconv"

	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
)

// writeIndex renders the first screen, which needs no wasm, with a card for every demo.
func (b *build) writeIndex() error {
	list, err := site.Demos()
	if err != nil {
		return err
	}
	page, err := template.New("index.tmpl").Funcs(template.FuncMap{
		"count": count, "spaced": spaced, "address": b.address, "worker": b.worker,
	}).ParseFiles("site/index.tmpl")
	if err != nil {
		return err
	}
	var out bytes.Buffer
	err = page.Execute(&out, struct {
		Policy  string
		Demos   []site.Demo
		Formats []open.Format
	}{policy.Meta, list, open.Formats()})
	if err != nil {
		return err
	}
	return b.write("index.html", out.Bytes())
}

// count formats a number with groups of thousands.
func count(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	return digits
}

var (
	thousands = regexp.MustCompile(`(\d),(\d{3})\b`)
	units     = regexp.MustCompile(`(\d) ((?:[KMG]i)?B\b|%)`)
)

// spaced formats the numbers of a lesson for the page: no line break separates them from their units.
func spaced(text string) string {
	for thousands.MatchString(text) {
		text = thousands.ReplaceAllString(text, "$1\u202f$2")
	}
	return units.ReplaceAllString(text, "$1\u202f$2")
}
