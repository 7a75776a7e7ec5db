// Package site embeds the page, the demos and the manual in the command.
//
// tools/sitebuild writes the page to site/dist, which only the commits of releases contain. If
// site/dist does not exist when the command is built, the command contains no page; see [Dist].
package site

import (
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

//go:embed all:dist
var dist embed.FS

//go:embed demos/demos.json demos/*.sgt demos/*.c
var demos embed.FS

//go:embed docs/*.md
var manual embed.FS

// Topic is a page of the manual.
type Topic struct {
	Name  string // the name in `stackglass help NAME` and docs/NAME.html
	Title string
	Group string // the heading in docs/index.md under which the page is listed
	File  string // the path of the page's Markdown file in the repository
}

// documented lists the manual pages that are stored next to the code that they describe. It maps
// the paths of these pages to the names of the pages.
var documented = map[string]string{"core/MODELS.md": "models", "core/trace/sgt/FORMAT.md": "sgt", "core/loops/FORMAT.md": "sgl"}

var listed = regexp.MustCompile(`(?m)^## (.*)$|^- \[([^\]]*)\]\(([^)]*\.md)\)`)

// Manual lists the pages of the manual, in the order of docs/index.md. The first page is
// docs/index.md itself.
func Manual() []Topic {
	text, err := manual.ReadFile("docs/index.md")
	if err != nil {
		panic(err) // the file is embedded
	}
	topics := []Topic{{Name: "index", Title: "Manual", File: "site/docs/index.md"}}
	group := ""
	for _, m := range listed.FindAllStringSubmatch(string(text), -1) {
		if m[1] != "" {
			group = m[1]
			continue
		}
		file := path.Join("site/docs", m[3])
		name, ok := documented[file]
		if !ok {
			name = strings.TrimSuffix(m[3], ".md")
		}
		topics = append(topics, Topic{name, m[2], group, file})
	}
	return topics
}

// ManualPage returns the Markdown of a page in docs.
func ManualPage(name string) ([]byte, error) { return manual.ReadFile("docs/" + name + ".md") }

// ErrNotBuilt means that the program was built without the page in site/dist.
var ErrNotBuilt = errors.New("this program does not contain the page; install a release with `go install github.com/stackglass/stackglass/tools/stackglass@latest`, or run `make build` in the source folder and use the new bin/stackglass")

// Dist returns the files of the page, or [ErrNotBuilt].
func Dist() (fs.FS, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, "index.html"); err != nil {
		return nil, ErrNotBuilt
	}
	return files, nil
}

// Demo is a small trace of a real program, with a question that the trace answers.
type Demo struct {
	Name       string `json:"name"`       // the demo's name for `stackglass demo`
	Title      string `json:"title"`      // describes the program
	Question   string `json:"question"`   // the question that this demo answers
	File       string `json:"file"`       // the trace, in site/demos
	Source     string `json:"source"`     // the C program, in the same folder
	Opens      string `json:"opens"`      // the view and the caches with which the page opens the demo, in the syntax of the URL's hash; this view answers the question
	References uint64 `json:"references"` // data references in the trace
	Lines      uint64 `json:"lines"`      // distinct 64-byte lines
	// an exercise: a question to answer before the lesson is shown
	Predict  Prediction    `json:"predict"`
	Lesson   []string      `json:"lesson"`   // the answer, in two or three sentences
	Views    []string      `json:"views"`    // for each sentence, the view that shows it: overview, locality, caches, threads, communication, loops, counters
	Against  string        `json:"against"`  // the name of the demo to compare with this demo, or ""
	Expected []Expectation `json:"expected"` // the numbers that the lesson states
}

// Prediction is a question with several answers to choose from.
type Prediction struct {
	Ask     string   `json:"ask"`
	Choices []string `json:"choices"`
	Right   int      `json:"right"`         // index in Choices
	Why     string   `json:"why,omitempty"` // explains the answer, if the lesson does not
}

// Expectation is a number that a demo's lesson states, such as the misses of a cache.
type Expectation struct {
	Cache  string `json:"cache,omitempty"`  // in the syntax of --cache
	Limit  uint64 `json:"limit,omitempty"`  // count only the first Limit references; 0: all
	Thread uint32 `json:"thread,omitempty"` // count only references of this thread; 0: all
	Misses uint64 `json:"misses,omitempty"`
	// Taken is the number of references to lines that another thread's store has invalidated,
	// assuming that each thread has an unlimited cache.
	Taken uint64 `json:"taken,omitempty"`
	// Transfers is the number of words that thread From wrote and that thread To then loaded before
	// any other thread did. A From or To of 0 means all threads.
	Transfers uint64 `json:"transfers,omitempty"`
	From      uint32 `json:"from,omitempty"`
	// False is the number of misses caused by the first reported case of false sharing. At is the
	// location of the store (FILE:LINE), and Data is the name of the data. Unshared means that
	// there is no false sharing and that no line is invalidated.
	False    uint64 `json:"false,omitempty"`
	At       string `json:"at,omitempty"`
	Data     string `json:"data,omitempty"`
	Unshared bool   `json:"unshared,omitempty"`
	To       uint32 `json:"to,omitempty"`
}

// Demos lists the demos in the order of the page.
func Demos() ([]Demo, error) {
	text, err := demos.ReadFile("demos/demos.json")
	if err != nil {
		return nil, err
	}
	var list []Demo
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	return list, nil
}

// DemoFile returns the content of a file in site/demos: a trace or a source file.
func DemoFile(name string) ([]byte, error) { return demos.ReadFile("demos/" + name) }
