package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site/policy"
)

// Every page of the manual is made, under the policy, and its links lead to files of the site.
func TestManual(t *testing.T) {
	sources, err := filepath.Glob("site/docs/*.md")
	if err != nil || len(sources) != len(manualOrder) {
		t.Fatalf("site/docs has %d pages, and the manual %d (%v)", len(sources), len(manualOrder), err)
	}
	b := made(t)
	link := regexp.MustCompile(`(?:href|src)="([^"#]+)`)
	for _, name := range manualOrder {
		folder := filepath.Join(b.out, "docs")
		text, err := os.ReadFile(filepath.Join(folder, name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		page := html.UnescapeString(string(text))
		if !strings.Contains(page, policy.Meta) || strings.Count(page, "<h1") != 1 {
			t.Errorf("%s has no policy, or not one heading", name)
		}
		links := link.FindAllStringSubmatch(page, -1)
		for _, to := range links {
			if _, err := os.Stat(filepath.Join(folder, to[1])); err != nil {
				t.Errorf("%s leads to %s: %v", name, to[1], err)
			}
		}
		if !slices.ContainsFunc(links, func(to []string) bool { return to[1] == "ask.html" }) {
			t.Errorf("%s has no links to other pages", name)
		}
	}
}
