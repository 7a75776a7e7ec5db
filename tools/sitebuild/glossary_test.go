package main

import (
	"os"
	"strings"
	"testing"
)

// TestGlossary checks that each term is defined once, has an anchor, and links to a page that
// exists.
func TestGlossary(t *testing.T) {
	pages, err := manualPages()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, page := range pages {
		names[page.Name] = string(page.Body)
	}
	terms, _ := glossary(names["glossary"])
	if text, err := os.ReadFile("site/docs/glossary.md"); err != nil || len(terms) != strings.Count(string(text), "\n| ")-1 {
		t.Fatalf("read %d terms from the table of the glossary, which has a different number of rows (%v)", len(terms), err)
	}
	seen := map[string]bool{}
	for _, term := range terms {
		for _, word := range term.Words {
			if word == "" || seen[strings.ToLower(word)] || strings.ContainsAny(word, "()<>&,") {
				t.Errorf("%q is not a valid term, or is defined twice", word)
			}
			seen[strings.ToLower(word)] = true
		}
		if term.Meaning == "" {
			t.Errorf("%q has no meaning", term.Words)
		}
		name, anchor, _ := strings.Cut(term.More, "#")
		body, exists := names[strings.TrimSuffix(name, ".html")]
		if !exists || anchor != "" && strings.Count(body, `id="`+anchor+`"`) != 1 {
			t.Errorf("%q: the manual has no %s", term.Words, term.More)
		}
	}
}
