package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

var (
	glossaryRow  = regexp.MustCompile(`(?s)<tr>\s*<td(?: id="[^"]*")?>(.*?)</td>\s*<td>(.*?)</td>\s*</tr>`)
	inBrackets   = regexp.MustCompile(` \([^)]*\)`)
	notForAnchor = regexp.MustCompile(`[^a-z0-9]+`)
	linkTarget   = regexp.MustCompile(`href="([^"]*)"`)
)

// term is a row of the glossary: the synonyms and the meaning of a term, and the URL, relative to
// docs/, of a longer explanation.
type term struct {
	Words   []string
	Meaning string
	More    string
}

// glossary returns the terms of the manual's glossary page, and the page with an anchor in each
// row.
func glossary(body string) (terms []term, anchored string) {
	anchored = glossaryRow.ReplaceAllStringFunc(body, func(row string) string {
		cells := glossaryRow.FindStringSubmatch(row)
		names := inBrackets.ReplaceAllString(plainText(cells[1]), "")
		t := term{Words: strings.Split(names, ", "), Meaning: plainText(cells[2])}
		anchor := strings.Trim(notForAnchor.ReplaceAllString(strings.ToLower(t.Words[0]), "-"), "-")
		t.More = "glossary.html#" + anchor
		if link := linkTarget.FindStringSubmatch(cells[1]); link != nil {
			t.More = link[1]
		}
		terms = append(terms, t)
		return strings.Replace(row, "<td>", `<td id="`+anchor+`">`, 1)
	})
	return terms, anchored
}

// writeTerms writes a script that contains the terms and explains them where they occur in a
// result.
func (b *build) writeTerms(pages []manualPage) error {
	var terms []term
	for _, page := range pages {
		if page.Name == "glossary" {
			terms, _ = glossary(string(page.Body))
		}
	}
	if len(terms) == 0 {
		return errors.New("the manual has no glossary page with a table of terms")
	}
	rows := make([][3]string, len(terms))
	for i, t := range terms {
		rows[i] = [3]string{strings.Join(t.Words, ","), t.Meaning, t.More}
	}
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	script, err := os.ReadFile("site/terms.js")
	if err != nil {
		return err
	}
	return b.write("terms.js", fmt.Appendf(nil, "window.glossary=%s;\n%s", list, script))
}
