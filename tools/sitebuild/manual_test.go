package main

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/site"
	"github.com/stackglass/stackglass/site/policy"
)

var (
	linkOrFile = regexp.MustCompile(`(?:href|src|data-index)="([^"#]*)(?:#([^"]*))?"`)
	inSearch   = regexp.MustCompile(`(?s)window\.manualIndex=(.*);`)
)

// TestManual checks that every page of the manual is built and contains the policy, and that all
// links lead to existing files and anchors of the site.
func TestManual(t *testing.T) {
	b := buildSite(t)
	folder := filepath.Join(b.out, "docs")
	topics := site.Manual()
	if len(topics) < 25 {
		t.Fatalf("the manual has only %d pages", len(topics))
	}
	pages := map[string]string{}
	for _, topic := range topics {
		text, err := os.ReadFile(filepath.Join(folder, topic.Name+".html"))
		if err != nil {
			t.Fatal(err)
		}
		pages[topic.Name+".html"] = html.UnescapeString(string(text))
	}
	for name, page := range pages {
		if !strings.Contains(page, policy.Meta) || strings.Count(page, "<h1") != 1 {
			t.Errorf("%s lacks the policy, or does not have exactly one heading", name)
		}
		links := linkOrFile.FindAllStringSubmatch(page, -1)
		for _, to := range links {
			target, anchor := to[1], to[2]
			if _, err := os.Stat(filepath.Join(folder, target)); err != nil {
				t.Errorf("%s links to the missing file %s: %v", name, target, err)
			}
			if target == "" {
				target = name
			}
			if anchor != "" && !strings.Contains(pages[target], `id="`+anchor+`"`) {
				t.Errorf("%s links to %s#%s, but that anchor does not exist", name, target, anchor)
			}
		}
		if !slices.ContainsFunc(links, func(to []string) bool { return to[1] == "tutorial.html" }) {
			t.Errorf("%s has no links to other pages", name)
		}
	}
}

// TestManualIndex checks that the search index contains every page with its text, and that all of
// its anchors exist.
func TestManualIndex(t *testing.T) {
	b := buildSite(t)
	address, err := b.urlOf("manual-index.js")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(filepath.Join(b.out, address))
	if err != nil {
		t.Fatal(err)
	}
	var sections [][5]string
	if err := json.Unmarshal(inSearch.FindSubmatch(script)[1], &sections); err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, s := range sections {
		pages[s[0]] = true
		if s[0] == "stack-distance" && s[1] == "sets" && !strings.Contains(s[4], "65,536") {
			t.Errorf("the section on sets has the text %q, want 65,536 in it", s[4])
		}
	}
	if len(pages) != len(site.Manual()) {
		t.Errorf("the search index contains %d of %d pages", len(pages), len(site.Manual()))
	}
}

// TestSingleDocumentManual checks that the single-document manual links only to its own anchors.
func TestSingleDocumentManual(t *testing.T) {
	text, err := manualInOne("p{}", "default-src 'none'")
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(text)
	anchors := map[string]bool{}
	for _, m := range anchorID.FindAllStringSubmatch(page, -1) {
		if anchors[m[1]] {
			t.Errorf("the anchor %s occurs twice", m[1])
		}
		anchors[m[1]] = true
	}
	links := 0
	for _, to := range linkOrFile.FindAllStringSubmatch(page, -1) {
		links++
		if to[1] != "" && !strings.HasPrefix(to[1], "data:") || to[2] != "" && !anchors[to[2]] {
			t.Errorf("the document links to %s#%s, which is outside the document", to[1], to[2])
		}
	}
	if links < 100 {
		t.Errorf("the document has %d links, want at least 100", links)
	}
}
