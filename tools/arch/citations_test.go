package arch

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The constant "models" is the path of the document that comments cite, for example as "MODELS §4"
// or "MODELS §6.4".
const models = "core/MODELS.md"

var (
	section  = regexp.MustCompile(`(?m)^#{2,3} (\d+(?:\.\d+)?) `)
	citation = regexp.MustCompile(`\bMODELS\b(?:\.md\b| §(\d+(?:\.\d+)?))?`)
	document = regexp.MustCompile(`[%A-Za-z0-9_./-]+\.md\b`)
	linkText = regexp.MustCompile(`\[[^\]]*\]\(`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestCitationsResolve checks that all cited sections of core/MODELS.md and all cited Markdown
// documents exist.
func TestCitationsResolve(t *testing.T) {
	sections := map[string]bool{}
	for _, m := range section.FindAllStringSubmatch(readFile(t, models), -1) {
		sections[m[1]] = true
	}
	citations := 0
	walkExcept(t, func(name string) bool { return isSkipped(name) && path.Base(name) != "testdata" }, func(name string) {
		if !strings.Contains(" .go .vugu .js .md .c .h ", " "+path.Ext(name)+" ") || name == "tools/arch/citations_test.go" {
			return
		}
		for i, line := range strings.Split(readFile(t, name), "\n") {
			for _, m := range citation.FindAllStringSubmatch(line, -1) {
				switch {
				case strings.HasSuffix(m[0], ".md"): // the match is a Markdown document, which is checked below
				case m[1] == "":
					t.Errorf("%s:%d: MODELS is cited without a section; cite %s as in MODELS §6.4, on one line", name, i+1, models)
				case !sections[m[1]]:
					t.Errorf("%s:%d: %s has no section %s", name, i+1, models, m[1])
				default:
					citations++
				}
			}
			for _, cited := range mentionedDocuments(name, line) {
				if !isResolved(rootFolder(t), name, cited) {
					t.Errorf("%s:%d: there is no %s in this folder or its parents", name, i+1, cited)
				}
			}
		}
	})
	if citations < 50 {
		t.Errorf("found only %d citations of %s, want more", citations, models)
	}
}

// TestLinks checks that every relative link in a Markdown document, such as an entry of a table of
// contents, leads to an existing file and to a heading of that file.
func TestLinks(t *testing.T) {
	anchors := map[string]map[string]bool{}
	links := 0
	walkFiles(t, func(name string) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllStringSubmatch(codeFence.ReplaceAllString(readFile(t, name), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // an external URL
			}
			links++
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(rootFolder(t), filepath.FromSlash(file))); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, target)
				continue
			}
			if anchor == "" || path.Ext(file) != ".md" {
				continue
			}
			if anchors[file] == nil {
				anchors[file] = map[string]bool{}
				for _, m := range heading.FindAllStringSubmatch(readFile(t, file), -1) {
					anchors[file][anchorOf(m[1])] = true
				}
			}
			if !anchors[file][anchor] {
				t.Errorf("%s links to %s#%s, but no heading has that anchor", name, file, anchor)
			}
		}
	})
	if links < 150 {
		t.Errorf("found only %d links, want more", links)
	}
}

// anchorOf returns the link target that GitHub generates for a heading.
func anchorOf(heading string) string {
	keep := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z':
			return r
		}
		return -1
	}
	return strings.Map(keep, strings.ToLower(heading))
}

// mentionedDocuments returns the names of all Markdown files that a line of a file mentions.
// If a name is part of a link, the function returns the link's target. URLs and format strings such
// as %s/README.md are ignored.
func mentionedDocuments(file, line string) (names []string) {
	if path.Ext(file) == ".md" {
		line = linkText.ReplaceAllString(line, "(")
	}
	line = strings.ReplaceAll(line, `\n`, " ")
	for _, name := range document.FindAllString(line, -1) {
		if !strings.HasPrefix(name, "//") && !strings.Contains(name, "%") {
			names = append(names, name)
		}
	}
	return names
}

// isResolved reports whether a cited file exists in the same folder as the citing
// file, or in a parent folder within the repository.
func isResolved(root, file, cited string) bool {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Join(dir, cited)))); err == nil {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// readFile returns the text of a file in the repository.
func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rootFolder(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
